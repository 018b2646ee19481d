"""Calls and outcomes: the values at the two ends of a batch."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs

from ._argument_text import parse_argument_text
from ._content import ContentBlock, TextBlock
from ._json import JsonValue

if TYPE_CHECKING:
    from ._scopes import Scope

__all__ = ["DeniedBy", "Effect", "ErrorInfo", "Failure", "Outcome", "Success", "ToolCall"]


@attrs.frozen(eq=False)
class ToolCall:
    """One call that the model asks for.

    Attributes:
        call_id: The provider's label. It may repeat; quiesce tells calls apart by batch and position.
        name: The tool's name as the model wrote it.
        arguments: What the model wrote, parsed; a value that is not an object fails as ``INVALID_ARGS``.
        agent: The scope whose tools and hooks apply, or ``None`` for the registry's own.
        arguments_text: The raw text behind ``arguments`` if there was one; it is what the journal keeps.
    """

    call_id: str = attrs.field(validator=attrs.validators.instance_of(str))
    name: str = attrs.field(validator=attrs.validators.instance_of(str))
    arguments: JsonValue = attrs.field(factory=dict[str, JsonValue])
    agent: Scope | None = None
    arguments_text: str | None = None

    @classmethod
    def from_text(cls, call_id: str, name: str, text: str, *, agent: Scope | None = None) -> ToolCall:
        """Make a call from a provider's raw argument text.

        Args:
            call_id: The provider's label.
            name: The tool's name.
            text: The raw text. Only the empty text means ``{}``; text that is not JSON is kept as a string,
                which fails as ``INVALID_ARGS`` when the call's turn comes.
            agent: The scope whose tools and hooks apply.

        Source: ``spec/behaviour.md`` G4.1.
        """
        return cls(call_id, name, parse_argument_text(text), agent, text)


class Effect(enum.Enum):
    """What is known of the effects of a call's body."""

    NOT_STARTED = "not_started"
    """The body was never invoked."""
    UNKNOWN = "unknown"
    """It was invoked, and at least one invocation raised or was cut short."""
    COMPLETED = "completed"
    """Every invocation returned a value."""


DeniedBy: TypeAlias = Literal["hook", "guard", "user", "unavailable"]


@attrs.frozen
class ErrorInfo:
    """What went wrong in a failed call.

    Attributes:
        message: For people and models, without the ``Error: `` that the content carries.
        name: The class name of the error.
        code: A stable identifier for programs, or ``None``.
    """

    message: str
    name: str
    code: str | None = None


def _text_of(content: tuple[ContentBlock, ...]) -> str:
    return "\n".join(block.text for block in content if isinstance(block, TextBlock))


@attrs.frozen
class Success:
    """A call whose value is valid and was not replaced by a failure.

    Attributes:
        call_id: The provider's label of the call.
        name: The tool's name.
        index: The call's place in its batch, from 0.
        value: The tool's value as frozen JSON.
        content: What the model sees, in order.
        meta: What the tool's ``presentation_meta`` projected, or ``None``.
        contexts: Extra contexts for the next request, in order.
        concludes_turn: Whether the body declared the turn complete.
        effect: What is known of the body's effects; ``NOT_STARTED`` if a wrapper answered in its place.
    """

    call_id: str
    name: str
    index: int
    value: JsonValue
    content: tuple[ContentBlock, ...]
    meta: JsonValue = None
    contexts: tuple[JsonValue, ...] = ()
    concludes_turn: bool = False
    effect: Effect = Effect.COMPLETED

    @property
    def is_error(self) -> Literal[False]:
        """Always ``False``."""
        return False

    @property
    def code(self) -> None:
        """Always ``None``."""
        return

    @property
    def text(self) -> str:
        """The text blocks of ``content``, joined by line breaks."""
        return _text_of(self.content)


@attrs.frozen
class Failure:
    """A call that failed, was denied or was cancelled.

    Attributes:
        call_id: The provider's label of the call.
        name: The tool's name.
        index: The call's place in its batch, from 0.
        error: Message, name and code.
        content: What the model sees, in order.
        meta: Metadata that a wrapper gave, or ``None``.
        contexts: Extra contexts for the next request, in order.
        effect: What is known of the body's effects.
        denied_by: Who denied it: ``hook``, ``guard``, ``user``, ``unavailable`` (nobody could be asked), or
            ``None`` if it was not denied.
        late_value: The value that the body returned although the call was cancelled, or ``None``. It is for
            programs; the model is never shown it.
    """

    call_id: str
    name: str
    index: int
    error: ErrorInfo
    content: tuple[ContentBlock, ...]
    meta: JsonValue = None
    contexts: tuple[JsonValue, ...] = ()
    effect: Effect = Effect.NOT_STARTED
    denied_by: DeniedBy | None = None
    late_value: JsonValue = None

    @property
    def is_error(self) -> Literal[True]:
        """Always ``True``."""
        return True

    @property
    def code(self) -> str | None:
        """The code of ``error``."""
        return self.error.code

    @property
    def text(self) -> str:
        """The text blocks of ``content``, joined by line breaks."""
        return _text_of(self.content)


Outcome: TypeAlias = Success | Failure
