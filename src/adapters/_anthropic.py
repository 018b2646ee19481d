"""Anthropic messages: content blocks in, one user message of results out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import attrs

from ..registry import ContentBlock, ImageBlock, JsonValue, OtherBlock, Outcome, Scope, ToolCall
from ._blocks import context_blocks, held, placeholder
from ._detached import function_parts, plain_object
from ._files import FileContent, sendable_file
from ._format import Message, Schemas
from ._images import anthropic_source, sendable_image
from ._node import Node
from ._reading import CallNode, check_assistant, last_turn, to_tool_calls
from ._shapes import is_history, shape_of

__all__ = ["Anthropic"]

_HTTPS: Final = ("https",)
_NATIVE_BLOCKS: Final = {
    "document": "source",
    "image": "source",
    "search_result": "content",
    "text": "text",
    "tool_reference": "tool_name",
}
"""The blocks of a tool result that are passed on whole, with the member that makes them one."""
_NO_CONTENT: Final = "(no content)"


@attrs.frozen
class Anthropic:
    """Anthropic messages.

    Only ``tool_use`` blocks are calls for quiesce; ``server_tool_use`` and ``mcp_tool_use`` run at Anthropic.

    Source: the API reference, "Messages", and "Handle tool calls"; ``docs/adapters.md``.
    """

    name: Literal["anthropic"] = "anthropic"

    def matches(self, document: object) -> bool:
        """See ``MessageFormat``."""
        return shape_of(document) == self.name

    def calls(
        self,
        document: object,
        *,
        agent: Scope | None = None,
        lenient: bool = False,
        schemas: Schemas | None = None,
    ) -> list[ToolCall]:
        """See ``MessageFormat``. Takes a message (a response is one), a request, a history, or a content list."""
        return to_tool_calls(_calls_of_document(document), agent=agent, lenient=lenient, schemas=schemas)

    def messages(
        self,
        outcomes: Iterable[Outcome],
        *,
        document: object = None,  # noqa: ARG002 - part of the protocol
        contexts: bool = True,
    ) -> list[Message]:
        """See ``MessageFormat``. One user message: all results first, then the contexts."""
        results = list(outcomes)
        content: list[JsonValue] = [_tool_result(outcome) for outcome in results]
        if contexts:
            content += _blocks(context_blocks(results))
        return [{"role": "user", "content": content}] if content else []

    def tools(self, schemas: Iterable[Mapping[str, JsonValue]]) -> list[Message]:
        """See ``MessageFormat``."""
        return [function_parts(schema, "input_schema") for schema in schemas]


def _calls_of_document(document: object) -> list[CallNode]:
    whole = Node(document, "document")
    if whole.is_list:
        if is_history(whole.elements):
            return last_turn(Node(document, "messages"), _calls_of_message, _answers_of_message)
        return _calls_of_content(Node(document, "content"))
    if "messages" in whole.fields:
        return last_turn(Node(document, "request").get("messages"), _calls_of_message, _answers_of_message)
    return _calls_of_message(Node(document, "message"))


def _calls_of_message(message: Node) -> list[CallNode]:
    message.check_object("expected an assistant message")
    check_assistant(message)
    content = message.get("content")
    return [] if isinstance(content.value, str) else _calls_of_content(content)


def _calls_of_content(content: Node) -> list[CallNode]:
    return [
        CallNode(block.get("id"), block.get("name"), block.get("input"))
        for block in content.objects("expected a list of content blocks")
        if block.kind == "tool_use"
    ]


def _answers_of_message(message: Node) -> list[str]:
    blocks = message.get("content").elements
    answers = [block.get("tool_use_id").value for block in blocks if block.kind == "tool_result"]
    return [answer for answer in answers if isinstance(answer, str)]


def _tool_result(outcome: Outcome) -> Message:
    result: Message = {"type": "tool_result", "tool_use_id": outcome.call_id}
    blocks = _blocks(outcome.content)
    if not blocks and outcome.is_error:
        # The API refuses an error without content.
        blocks.append({"type": "text", "text": _NO_CONTENT})
    if blocks:
        result["content"] = blocks
    if outcome.is_error:
        result["is_error"] = True
    return result


def _blocks(blocks: Iterable[ContentBlock]) -> list[JsonValue]:
    written = [_block(block) for block in blocks]
    # The API refuses blank text blocks.
    return [block for block in written if block["type"] != "text" or str(block["text"]).strip()]


def _block(block: ContentBlock) -> Message:
    if isinstance(block, OtherBlock) and block.data.get(_NATIVE_BLOCKS.get(block.type, "")) is not None:
        return plain_object(block.data)
    content = held(block)
    if isinstance(content, str):
        return {"type": "text", "text": content}
    if isinstance(content, ImageBlock):
        image = sendable_image(content, _HTTPS)
        if image is not None:
            return {"type": "image", "source": anthropic_source(image)}
    if isinstance(content, FileContent):
        file = sendable_file(content, _HTTPS)
        if file is not None:
            return _document(file)
    return {"type": "text", "text": placeholder(block)}


def _document(file: FileContent) -> Message:
    if file.url is not None:
        source: Message = {"type": "url", "url": file.url}
    else:
        source = {"type": "base64", "media_type": file.media_type, "data": file.data}
    document: Message = {"type": "document", "source": source}
    return document | {"title": file.name} if file.name else document
