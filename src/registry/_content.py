"""Content blocks: what the model sees of a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias, cast

import attrs

from ._json import FrozenDict, JsonValue, freeze

__all__ = ["ContentBlock", "ImageBlock", "OtherBlock", "TextBlock", "as_content", "block_from_json", "block_to_json"]


@attrs.frozen
class TextBlock:
    """Text for the model.

    Attributes:
        text: The text; lone surrogates are kept and escaped by encoders.
    """

    text: str

    @property
    def type(self) -> str:
        """``text``."""
        return "text"


@attrs.frozen
class ImageBlock:
    """An image for the model, by value or by reference.

    Attributes:
        media_type: Such as ``image/png``; empty if only a URL is known.
        data: The base64 text, or ``None`` if ``url`` is given.
        url: Where the image is, or ``None`` if ``data`` is given.
    """

    media_type: str = ""
    data: str | None = None
    url: str | None = None

    def __attrs_post_init__(self) -> None:
        if (self.data is None) == (self.url is None):
            msg = f"an image needs exactly one of data and url, got data={self.data!r:.40} and url={self.url!r}"
            raise ValueError(msg)

    @property
    def type(self) -> str:
        """``image``."""
        return "image"


@attrs.frozen
class OtherBlock:
    """A block of a kind that quiesce does not interpret; adapters pass it on where the format can carry it.

    Attributes:
        data: The whole block as frozen JSON, its ``type`` included.
    """

    data: FrozenDict

    @property
    def type(self) -> str:
        """The kind that the block itself states."""
        return str(self.data.get("type", "unknown"))


ContentBlock: TypeAlias = TextBlock | ImageBlock | OtherBlock


def as_content(rendered: object) -> tuple[ContentBlock, ...]:
    """Read what a renderer or hook may return as content.

    Args:
        rendered: A string, a block, a JSON object with a ``type``, or an iterable of these.

    Returns:
        The blocks in order.

    Raises:
        TypeError: A part is none of these.
        NotLosslessError: A JSON block is not lossless JSON.
    """
    if isinstance(rendered, str):
        return (TextBlock(rendered),)
    if isinstance(rendered, TextBlock | ImageBlock | OtherBlock):
        return (rendered,)
    if isinstance(rendered, Mapping):
        return (block_from_json(cast("Mapping[str, JsonValue]", rendered)),)
    if isinstance(rendered, Iterable):
        return tuple(block for part in cast("Iterable[object]", rendered) for block in as_content(part))
    msg = f"content must be text, a content block or an iterable of them, got {rendered!r:.80}"
    raise TypeError(msg)


def block_to_json(block: ContentBlock) -> dict[str, JsonValue]:
    """The block as plain JSON; ``block_from_json`` reads it back."""
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, ImageBlock):
        pairs = (("type", "image"), ("mediaType", block.media_type or None), ("data", block.data), ("url", block.url))
        return {key: value for key, value in pairs if value is not None}
    return dict(block.data)


def block_from_json(data: Mapping[str, JsonValue]) -> ContentBlock:
    """Read a block from JSON; what is neither text nor an image as ``block_to_json`` writes it is kept whole."""
    match data:
        case {"type": "text", "text": str(text), **rest} if not rest:
            return TextBlock(text)
        case {"type": "image", **rest} if rest.keys() <= {"mediaType", "data", "url"} and (
            ("data" in rest) != ("url" in rest)
        ):
            media_type, payload, url = rest.get("mediaType", ""), rest.get("data"), rest.get("url")
            if isinstance(media_type, str) and isinstance(payload or url, str):
                return ImageBlock(media_type, cast("str | None", payload), cast("str | None", url))
        case _:
            pass
    return OtherBlock(cast("FrozenDict", freeze(dict(data))))
