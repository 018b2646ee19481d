"""A plain list of calls, for files written by hand and for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import attrs

from ..registry import Failure, JsonValue, Outcome, Scope, ToolCall, block_to_json, snapshot
from ._detached import function_parts, plain_object
from ._format import Message, Schemas
from ._node import Node
from ._reading import CallNode, to_tool_calls
from ._shapes import shape_of

__all__ = ["Plain"]

_KEYS: Final = frozenset({"id", "call_id", "name"})


@attrs.frozen
class Plain:
    """A plain list of calls: ``{"name": …, "arguments": …, "id": …}``, alone or as ``{"calls": […]}``.

    ``arguments`` is an object, or its JSON text; absent it is ``{}``. The id may also be called ``call_id``. Unknown
    members are refused where they could be misspelt arguments, and ignored elsewhere.

    Source: ours; ``docs/adapters.md``.
    """

    name: Literal["plain"] = "plain"

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
        """See ``MessageFormat``. Takes the list, or an object with ``calls``."""
        whole = Node(document, "calls")
        nodes = whole if whole.is_list else Node(document, "document").get("calls")
        calls = [_call(node) for node in nodes.objects("expected a list of calls")]
        return to_tool_calls(calls, agent=agent, lenient=lenient, schemas=schemas)

    def messages(
        self,
        outcomes: Iterable[Outcome],
        *,
        document: object = None,  # noqa: ARG002 - part of the protocol
        contexts: bool = True,
    ) -> list[Message]:
        """See ``MessageFormat``.

        Returns:
            One object per outcome with ``id``, ``name``, ``is_error``, ``code``, ``effect``, ``content`` (blocks as
            ``block_to_json`` writes them), and ``value`` if it succeeded, ``denied_by`` if it was denied, and
            ``contexts`` if it has any.
        """
        return [_result(outcome, contexts=contexts) for outcome in outcomes]

    def tools(self, schemas: Iterable[Mapping[str, JsonValue]]) -> list[Message]:
        """See ``MessageFormat``."""
        return [function_parts(schema) for schema in schemas]


def _call(node: Node) -> CallNode:
    arguments = node.get("arguments")
    if "arguments" not in node.fields:
        unknown = node.fields.keys() - _KEYS
        if unknown:
            node.refuse("expected 'arguments' where other members than 'id' and 'name' are given")
        arguments = Node({}, arguments.path)
    call_id = node.get("id" if "id" in node.fields else "call_id")
    return CallNode(call_id, node.get("name"), arguments)


def _result(outcome: Outcome, *, contexts: bool) -> Message:
    result: Message = {
        "id": outcome.call_id,
        "name": outcome.name,
        "is_error": outcome.is_error,
        "code": outcome.code,
        "effect": outcome.effect.value,
        "content": [plain_object(block_to_json(block)) for block in outcome.content],
    }
    if isinstance(outcome, Failure):
        if outcome.denied_by is not None:
            result["denied_by"] = outcome.denied_by
    else:
        result["value"] = snapshot(outcome.value)
    if contexts and outcome.contexts:
        result["contexts"] = [snapshot(context) for context in outcome.contexts]
    return result
