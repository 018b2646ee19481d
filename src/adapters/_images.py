"""Images: base64 with a media type, data URLs and URLs, and the shapes that other formats give them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import unquote, unquote_to_bytes

from ..registry import ImageBlock, JsonValue

__all__ = ["anthropic_source", "data_url", "foreign_image", "read_data_url", "sendable_image", "sniffed", "web_url"]

_SENDABLE: Final = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
"""What all three APIs take; anything else makes them refuse the whole request."""
_ALIASES: Final = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


def foreign_image(block: Mapping[str, JsonValue]) -> ImageBlock | None:
    """The image that a block of another format holds, or ``None``.

    Args:
        block: Anthropic's ``image``, Chat's ``image_url``, Responses' ``input_image``, MCP's ``image`` or an image
            resource of MCP.
    """
    match block:
        case {"type": "image", "source": {"type": "base64", "media_type": str(media_type), "data": str(data)}}:
            return ImageBlock(media_type, data)
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return ImageBlock(url=url)
        case {"type": "image", "data": str(data)}:
            given = (block.get(key) for key in ("mediaType", "mimeType", "media_type"))
            return ImageBlock(next((name for name in given if isinstance(name, str)), ""), data)
        case {"type": "image", "url": str(url)}:
            return ImageBlock(url=url)
        case {"type": "image_url" | "input_image", "image_url": {"url": str(url)} | str(url)}:
            return ImageBlock(url=url)
        case {"type": "resource", "resource": {"mimeType": str(media_type), "blob": str(data)}} if (
            media_type.startswith("image/")
        ):
            return ImageBlock(media_type, data)
        case _:
            return None


def sendable_image(image: ImageBlock, schemes: tuple[str, ...] = ("http", "https")) -> ImageBlock | None:
    """The image as an API takes it, or ``None`` if it takes no such image.

    Args:
        image: Any image.
        schemes: The schemes of URLs that the API fetches.

    Returns:
        An image by value, of one of the four media types, with its base64 text free of white space; or one by URL.
        The media type is that of the bytes where these tell, since an API refuses images that say otherwise.
    """
    media_type, data, url = image.media_type, image.data, image.url
    if url is not None:
        inline = read_data_url(url)
        if inline is None:
            return image if web_url(url, schemes) else None
        media_type, data = inline
    data = "".join((data or "").split())
    media_type = sniffed(data) or _ALIASES.get(media_type.strip().lower(), media_type.strip().lower())
    return ImageBlock(media_type, data) if data and media_type in _SENDABLE else None


def data_url(image: ImageBlock) -> str:
    """A sendable image as a URL: its own, or a data URL."""
    return image.url if image.url is not None else f"data:{image.media_type};base64,{image.data}"


def anthropic_source(image: ImageBlock) -> dict[str, JsonValue]:
    """A sendable image as Anthropic's ``source``."""
    if image.url is not None:
        return {"type": "url", "url": image.url}
    return {"type": "base64", "media_type": image.media_type, "data": cast("str", image.data)}


def read_data_url(url: str) -> tuple[str, str] | None:
    """Media type and base64 text of a ``data:`` URL (RFC 2397), or ``None`` if it is another URL."""
    head, comma, payload = url.partition(",")
    if not comma or head[:5].lower() != "data:":
        return None
    media_type, *parameters = head[5:].split(";")
    if any(parameter.strip().lower() == "base64" for parameter in parameters):
        return media_type, unquote(payload)
    # Lone surrogates must not stop the reading.
    raw = unquote_to_bytes(payload.encode("utf-8", "surrogatepass"))
    return media_type, base64.b64encode(raw).decode("ascii")


def web_url(url: str, schemes: tuple[str, ...]) -> bool:
    """Whether the URL has one of the schemes."""
    scheme, found, _rest = url.partition("://")
    return bool(found) and scheme.lower() in schemes


def sniffed(data: str) -> str:
    """The media type that the first bytes of base64 text tell, or the empty text."""
    try:
        head = base64.b64decode(data[:16], validate=True)
    except ValueError:
        return ""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for signature, media_type in _SIGNATURES if head.startswith(signature)), "")
