"""What a message format can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias

from ..registry import JsonValue, Outcome, Scope, ToolCall

__all__ = ["Message", "MessageFormat", "Schemas"]

Message: TypeAlias = dict[str, JsonValue]
"""A plain, detached JSON object for the API."""
Schemas: TypeAlias = Mapping[str, Mapping[str, JsonValue]]
"""Tool name to the JSON Schema of its arguments."""


class MessageFormat(Protocol):
    """How one API writes tool calls and wants their results.

    A document is plain JSON (dicts and lists), or an object of that API's SDK, also inside the dicts and lists. A
    format keeps no state, and never changes or keeps what it is given.
    """

    @property
    def name(self) -> str:
        """Its name, such as ``anthropic``."""
        ...

    def matches(self, document: object) -> bool:
        """Whether the document's outline is this format's; no document matches two formats of ``FORMATS``."""
        ...

    def calls(
        self,
        document: object,
        *,
        agent: Scope | None = None,
        lenient: bool = False,
        schemas: Schemas | None = None,
    ) -> list[ToolCall]:
        """Read the calls that a document asks for.

        Args:
            document: A message, response or history; see ``docs/adapters.md`` for what each format takes.
            agent: The scope that the calls belong to.
            lenient: Also read blank or absent arguments as ``{}``, and undo one level of double encoding where the
                schema wants an object or an array.
            schemas: What the schemas say, for ``lenient``. A tool that is not in it wants an object.

        Returns:
            The calls in the model's order; none if the document asks for none. Arguments that are not JSON, or not
            an object, are kept as they are and fail as ``INVALID_ARGS`` when run. A call without an id gets
            ``call_<place>``, counted from 1.

        Raises:
            MessageFormatError: The document has another shape.
        """
        ...

    def messages(self, outcomes: Iterable[Outcome], *, document: object = None, contexts: bool = True) -> list[Message]:
        """Write the messages to append to the history, after the message that asked.

        Args:
            outcomes: One per call, in the model's order. Ids are taken from them and may repeat.
            document: The document that the calls were read from. Only OpenAI Responses looks at it, and only needs
                it if the model called custom tools, whose results have a type of their own.
            contexts: Whether the outcomes' contexts are written too, after all results, as the user's text.

        Returns:
            The messages in order, plain and detached; none if there are no outcomes.

        Raises:
            MessageFormatError: ``document`` has another shape.
        """
        ...

    def tools(self, schemas: Iterable[Mapping[str, JsonValue]]) -> list[Message]:
        """Write the list of tools for a request.

        Args:
            schemas: What ``registry.schemas()`` returns: objects with ``name``, ``description`` and ``parameters``.
        """
        ...
