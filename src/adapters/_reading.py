"""From the parts of a document to tool calls; what all formats share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, cast

import attrs

from ..registry import JsonValue, Scope, ToolCall, parse_argument_text, unwrap_double_encoded
from ._errors import MessageFormatError
from ._format import Schemas
from ._node import Node

__all__ = ["CallNode", "check_assistant", "last_turn", "to_tool_calls", "unanswered"]

_ANY_OBJECT: Final[dict[str, JsonValue]] = {"type": "object"}


@attrs.frozen
class CallNode:
    """Where the parts of one call sit.

    Attributes:
        call_id: Its id; may be absent.
        name: The tool's name.
        arguments: Text or JSON; may be absent.
        is_freeform: Whether ``arguments`` is free text for a custom tool, and not JSON.
    """

    call_id: Node
    name: Node
    arguments: Node
    is_freeform: bool = False

    def label(self, place: int) -> str:
        """The id, or ``call_<place>`` if it has none; ``place`` counts from 1."""
        if self.call_id.value is None:
            return f"call_{place}"
        return self.call_id.text("expected the call's id as text")


def to_tool_calls(
    nodes: Iterable[CallNode], *, agent: Scope | None, lenient: bool, schemas: Schemas | None
) -> list[ToolCall]:
    """Make the calls; see ``MessageFormat.calls``."""
    calls: list[ToolCall] = []
    for place, node in enumerate(nodes, 1):
        name = node.name.text("expected the tool's name as text")
        label = node.label(place)
        if node.is_freeform:
            freeform = node.arguments.text("expected the custom tool's input as text")
            calls.append(ToolCall(label, name, {"input": freeform}, agent))
            continue
        raw = cast("JsonValue", node.arguments.value)
        text = raw if isinstance(raw, str) else None
        arguments = raw if text is None else parse_argument_text(text)
        if lenient:
            blank = raw is None or (text is not None and not text.strip())
            schema = (schemas or {}).get(name, _ANY_OBJECT)
            arguments = dict[str, JsonValue]() if blank else unwrap_double_encoded(schema, arguments)
        calls.append(ToolCall(label, name, arguments, agent, text))
    return calls


def check_assistant(message: Node) -> None:
    """Raise ``MessageFormatError`` if the message states another role than the assistant's."""
    role = message.get("role")
    if role.value not in (None, "assistant"):
        role.refuse("expected 'assistant': only a message of the model asks for tool calls")


def unanswered(asked: Iterable[str], answered: Iterable[str]) -> list[str]:
    """The ids that are asked more often than they are answered."""
    return list((Counter(asked) - Counter(answered)).elements())


def last_turn(
    history: Node,
    calls_of: Callable[[Node], list[CallNode]],
    answers_of: Callable[[Node], list[str]],
) -> list[CallNode]:
    """The calls of a history that wait for their results.

    Args:
        history: The messages in order.
        calls_of: The calls of an assistant message.
        answers_of: The ids whose results a later message holds.

    Returns:
        The calls of the last assistant message if it is the last message; none if all of its calls are answered.

    Raises:
        MessageFormatError: Other messages follow it, and some of its calls are not answered.
    """
    messages = history.objects("expected a list of messages")
    asking = [index for index, message in enumerate(messages) if message.role == "assistant"]
    if not asking:
        return []
    calls = calls_of(messages[asking[-1]])
    later = messages[asking[-1] + 1 :]
    if not later:
        return calls
    asked = [call.label(place) for place, call in enumerate(calls, 1)]
    missing = unanswered(asked, (answer for message in later for answer in answers_of(message)))
    if missing:
        raise MessageFormatError(
            messages[asking[-1]].path,
            f"{len(missing)} of {len(asked)} calls without a result, and messages after it",
            "pass that message alone to run all of its calls, or add the missing results",
        )
    return []
