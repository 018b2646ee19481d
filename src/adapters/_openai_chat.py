"""OpenAI chat completions, and the many servers that speak them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import attrs

from ..registry import ContentBlock, ImageBlock, JsonValue, OtherBlock, Outcome, Scope, ToolCall
from ._blocks import context_blocks, held, placeholder
from ._detached import function_parts, plain_object
from ._files import FileContent, sendable_file
from ._format import Message, Schemas
from ._images import data_url, sendable_image
from ._node import Node
from ._reading import CallNode, check_assistant, last_turn, to_tool_calls
from ._shapes import is_history, shape_of

__all__ = ["OpenAIChat"]

_NATIVE_PARTS: Final = {"image_url": "image_url", "input_audio": "input_audio", "file": "file"}
"""The parts of a user message that are passed on whole, with the member that makes them one."""


@attrs.frozen
class OpenAIChat:
    """OpenAI chat completions.

    A tool message holds text only, so images and files follow all tool messages in one user message.

    Source: the API reference, "Create chat completion"; ``docs/adapters.md``.
    """

    name: Literal["openai-chat"] = "openai-chat"

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
        """See ``MessageFormat``. Takes a message, a response, a request, a history, or a list of tool calls."""
        return to_tool_calls(_calls_of_document(document), agent=agent, lenient=lenient, schemas=schemas)

    def messages(
        self,
        outcomes: Iterable[Outcome],
        *,
        document: object = None,  # noqa: ARG002 - part of the protocol
        contexts: bool = True,
    ) -> list[Message]:
        """See ``MessageFormat``. One tool message per outcome, then at most one user message."""
        results = list(outcomes)
        written: list[Message] = []
        attached: list[Message] = []
        for outcome in results:
            texts = [_text_or_attach(block, outcome, attached) for block in outcome.content]
            written.append({"role": "tool", "tool_call_id": outcome.call_id, "content": "\n".join(texts)})
        if contexts:
            attached += [_user_part(block) for block in context_blocks(results)]
        return [*written, _user_message(attached)] if attached else written

    def tools(self, schemas: Iterable[Mapping[str, JsonValue]]) -> list[Message]:
        """See ``MessageFormat``."""
        return [{"type": "function", "function": function_parts(schema)} for schema in schemas]


def _calls_of_document(document: object) -> list[CallNode]:
    whole = Node(document, "document")
    if whole.is_list:
        if is_history(whole.elements):
            return last_turn(Node(document, "messages"), _calls_of_message, _answers_of_message)
        return _calls_of_list(Node(document, "tool_calls"))
    if "choices" in whole.fields:
        return _calls_of_response(Node(document, "response"))
    if "messages" in whole.fields:
        return last_turn(Node(document, "request").get("messages"), _calls_of_message, _answers_of_message)
    return _calls_of_message(Node(document, "message"))


def _calls_of_response(response: Node) -> list[CallNode]:
    choices = response.get("choices").objects("expected a list of choices")
    if not choices:
        response.get("choices").refuse("expected at least one choice; the response holds no message")
    choice = choices[0]
    if "message" not in choice.fields and "delta" in choice.fields:
        choice.refuse("expected a message; put the chunks of a stream together first")
    return _calls_of_message(choice.get("message"))


def _calls_of_message(message: Node) -> list[CallNode]:
    message.check_object("expected an assistant message")
    check_assistant(message)
    if not message.fields.keys() & {"role", "content", "tool_calls", "function_call"}:
        message.refuse("expected an assistant message with 'role', and 'tool_calls' if it asks for any")
    calls = message.get("tool_calls")
    legacy = message.get("function_call")
    if calls.value is None:
        if legacy.value is not None:
            legacy.refuse("expected 'tool_calls'; send 'tools' in place of the deprecated 'functions'")
        return []
    return _calls_of_list(calls)


def _calls_of_list(calls: Node) -> list[CallNode]:
    return [_call(node) for node in calls.objects("expected a list of tool calls")]


def _call(node: Node) -> CallNode:
    custom = node.kind == "custom" or ("custom" in node.fields and "function" not in node.fields)
    body = node.get("custom" if custom else "function")
    body.check_object("expected an object with the tool's name")
    return CallNode(node.get("id"), body.get("name"), body.get("input" if custom else "arguments"), custom)


def _answers_of_message(message: Node) -> list[str]:
    answer = message.get("tool_call_id").value
    return [answer] if message.role == "tool" and isinstance(answer, str) else []


def _part(block: ContentBlock) -> str | Message:
    if isinstance(block, OtherBlock):
        member = _NATIVE_PARTS.get(block.type)
        if member is not None and isinstance(block.data.get(member), Mapping):
            return plain_object(block.data)
    content = held(block)
    if isinstance(content, str):
        return content
    if isinstance(content, ImageBlock):
        image = sendable_image(content)
        if image is not None:
            return {"type": "image_url", "image_url": {"url": data_url(image)}}
    if isinstance(content, FileContent):
        file = sendable_file(content, schemes=())
        if file is not None:
            file_data = f"data:{file.media_type};base64,{file.data}"
            return {"type": "file", "file": {"filename": file.name, "file_data": file_data}}
    return placeholder(block)


def _text_or_attach(block: ContentBlock, outcome: Outcome, attached: list[Message]) -> str:
    part = _part(block)
    if isinstance(part, str):
        return part
    # Each attachment has two parts: a text that says whose it is, and itself.
    label = f"{str(part['type']).removeprefix('input_').removesuffix('_url')} {len(attached) // 2 + 1}"
    whose = f"[{label}, from the result of {outcome.name}, call {outcome.call_id}]"
    attached.append({"type": "text", "text": whose})
    attached.append(part)
    return f"[{label}: see the user message after the tool results]"


def _user_part(block: ContentBlock) -> Message:
    part = _part(block)
    return {"type": "text", "text": part} if isinstance(part, str) else part


def _user_message(parts: list[Message]) -> Message:
    if all(part["type"] == "text" for part in parts):
        return {"role": "user", "content": "\n\n".join(str(part["text"]) for part in parts)}
    return {"role": "user", "content": list[JsonValue](parts)}
