"""OpenAI Responses: items in, items out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import attrs

from ..registry import ContentBlock, ImageBlock, JsonValue, OtherBlock, Outcome, Scope, ToolCall
from ._blocks import context_blocks, held, placeholder
from ._detached import function_parts, plain_object
from ._errors import MessageFormatError
from ._files import FileContent, sendable_file
from ._format import Message, Schemas
from ._images import data_url, sendable_image
from ._node import Node
from ._reading import CallNode, to_tool_calls, unanswered
from ._shapes import shape_of

__all__ = ["OpenAIResponses"]

_NATIVE_PARTS: Final = frozenset({"input_image", "input_file"})
_ANSWERS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_INPUT_ROLES: Final = frozenset({"user", "system", "developer"})


@attrs.frozen
class OpenAIResponses:
    """OpenAI Responses.

    Only ``function_call`` and ``custom_tool_call`` items are calls for quiesce; a custom tool's free text is read as
    the argument ``input``. Calls of the API's own tools (computer, shell, MCP approvals) are left to the caller.

    Source: the API reference, "Create a model response"; ``docs/adapters.md``.
    """

    name: Literal["openai-responses"] = "openai-responses"

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
        """See ``MessageFormat``. Takes a response, its output items, or a history of items."""
        return to_tool_calls(_calls_of_document(document), agent=agent, lenient=lenient, schemas=schemas)

    def messages(self, outcomes: Iterable[Outcome], *, document: object = None, contexts: bool = True) -> list[Message]:
        """See ``MessageFormat``. One item per outcome, then at most one user message."""
        results = list(outcomes)
        calls = [] if document is None else _calls_of_document(document)
        custom = {call.label(place) for place, call in enumerate(calls, 1) if call.is_freeform}
        written: list[Message] = [
            {
                "type": "custom_tool_call_output" if outcome.call_id in custom else "function_call_output",
                "call_id": outcome.call_id,
                "output": _output([_part(block) for block in outcome.content]),
            }
            for outcome in results
        ]
        extra = [_part(block) for block in context_blocks(results)] if contexts else []
        if extra:
            written.append({"type": "message", "role": "user", "content": list[JsonValue](extra)})
        return written

    def tools(self, schemas: Iterable[Mapping[str, JsonValue]]) -> list[Message]:
        """See ``MessageFormat``. States ``strict: false``, as the API's default refuses optional parameters."""
        return [{"type": "function", **function_parts(schema), "strict": False} for schema in schemas]


def _calls_of_document(document: object) -> list[CallNode]:
    whole = Node(document, "document")
    if whole.is_list:
        return _calls_of_items(Node(document, "items"))
    whole.check_object("expected a response with 'output', or a list of items")
    return _calls_of_items(Node(document, "response").get("output"))


def _calls_of_items(items: Node) -> list[CallNode]:
    """The calls since the last input; a list that is a history must hold the results of all earlier ones."""
    nodes = items.objects("expected a list of output items")
    inputs = [place for place, node in enumerate(nodes, 1) if node.kind in _ANSWERS or node.role in _INPUT_ROLES]
    start = inputs[-1] if inputs else 0
    earlier = [call.label(place) for place, call in enumerate(_calls_among(nodes[:start]), 1)]
    answers = [node.get("call_id").value for node in nodes if node.kind in _ANSWERS]
    missing = unanswered(earlier, [answer for answer in answers if isinstance(answer, str)])
    if missing:
        raise MessageFormatError(
            items.path,
            f"{len(missing)} of {len(earlier)} calls without a result, and input after them",
            "pass the output items of one response alone to run all of its calls, or add the missing results",
        )
    return _calls_among(nodes[start:])


def _calls_among(nodes: Iterable[Node]) -> list[CallNode]:
    calls: list[CallNode] = []
    for node in nodes:
        if node.kind == "function_call":
            calls.append(CallNode(node.get("call_id"), node.get("name"), node.get("arguments")))
        elif node.kind == "custom_tool_call":
            calls.append(CallNode(node.get("call_id"), node.get("name"), node.get("input"), is_freeform=True))
    return calls


def _part(block: ContentBlock) -> Message:
    if isinstance(block, OtherBlock) and block.type in _NATIVE_PARTS:
        return plain_object(block.data)
    content = held(block)
    if isinstance(content, str):
        return {"type": "input_text", "text": content}
    if isinstance(content, ImageBlock):
        image = sendable_image(content)
        if image is not None:
            return {"type": "input_image", "image_url": data_url(image), "detail": "auto"}
    if isinstance(content, FileContent):
        file = sendable_file(content)
        if file is not None and file.url is not None:
            return {"type": "input_file", "file_url": file.url}
        if file is not None:
            file_data = f"data:{file.media_type};base64,{file.data}"
            return {"type": "input_file", "filename": file.name, "file_data": file_data}
    return {"type": "input_text", "text": placeholder(block)}


def _output(parts: list[Message]) -> JsonValue:
    if all(part["type"] == "input_text" for part in parts):
        return "\n".join(str(part["text"]) for part in parts)
    return list[JsonValue](parts)
