"""Content blocks on their way to a format: what they hold, whatever shape it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, cast

from ..registry import ContentBlock, ImageBlock, JsonValue, OtherBlock, Outcome, TextBlock, as_content, canonical_text
from ._files import FileContent, foreign_file
from ._images import foreign_image

__all__ = ["Held", "context_blocks", "held", "placeholder"]

Held: TypeAlias = str | ImageBlock | FileContent | None

_MOST_DETAIL: Final = 200


def held(block: ContentBlock) -> Held:
    """What a block holds: all of its text, an image, a file, or ``None`` for what no other format carries."""
    if isinstance(block, TextBlock):
        return block.text
    if isinstance(block, ImageBlock):
        return block
    text = _foreign_text(block.data)
    if text is not None:
        return text
    return foreign_image(block.data) or foreign_file(block.data)


def placeholder(block: ContentBlock) -> str:
    """A text that keeps the place of a block which the format cannot carry: ``[audio content]``."""
    detail = _detail(block)
    return f"[{block.type} content: {detail}]" if detail else f"[{block.type} content]"


def context_blocks(outcomes: Sequence[Outcome]) -> list[ContentBlock]:
    """The content of the outcomes' contexts, in order.

    A context is a text, a content block or a list of them, or an object with such a ``content``; any other JSON
    is shown as its text.
    """
    return [block for outcome in outcomes for context in outcome.contexts for block in _context_content(context)]


def _context_content(context: JsonValue) -> tuple[ContentBlock, ...]:
    content = context.get("content", context) if isinstance(context, Mapping) else context
    if isinstance(content, str) or _is_block(content):
        return as_content(content)
    if isinstance(content, list | tuple) and content and all(_is_block(part) for part in content):
        return as_content(content)
    return (TextBlock(canonical_text(context)),)


def _is_block(value: object) -> bool:
    return isinstance(value, Mapping) and isinstance(cast("Mapping[str, object]", value).get("type"), str)


def _foreign_text(block: Mapping[str, JsonValue]) -> str | None:
    match block:
        case {"type": "text" | "input_text" | "output_text", "text": str(text)}:
            return text
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return _titled(block.get("title"), text)
        case {"type": "search_result", "source": str(source), "content": [*parts]}:
            texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
            return _titled(block.get("title"), "\n".join([source, *(text for text in texts if isinstance(text, str))]))
        case _:
            return None


def _titled(title: JsonValue, text: str) -> str:
    return f"{title}\n{text}" if isinstance(title, str) and title else text


def _detail(block: ContentBlock) -> str:
    data: Mapping[str, JsonValue] = block.data if isinstance(block, OtherBlock) else {}
    image = block if isinstance(block, ImageBlock) else foreign_image(data)
    if image is not None:
        named: list[JsonValue] = [image.media_type, image.url]
    else:
        resource = data.get("resource")
        nested = resource.get("uri") if isinstance(resource, Mapping) else None
        named = [*(data.get(key) for key in ("title", "filename", "name", "uri")), nested]
    detail = next((name for name in named if isinstance(name, str) and name), "")
    return "" if detail[:5].lower() == "data:" else detail[:_MOST_DETAIL]
