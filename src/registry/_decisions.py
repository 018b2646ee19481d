"""What hooks decide."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, cast

import attrs

from ._json import JsonValue

__all__ = [
    "UNSET",
    "Accept",
    "Allow",
    "ApprovalOutcome",
    "Ask",
    "Block",
    "Deny",
    "PostDecision",
    "PreDecision",
    "Unset",
]


class _Unset(enum.Enum):
    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset.UNSET
"""Not given, where ``None`` is a value of its own."""
Unset: TypeAlias = Literal[_Unset.UNSET]


@attrs.frozen
class Allow:
    """Let the call go on."""


@attrs.frozen
class Deny:
    """Refuse the call; its body never runs.

    Attributes:
        reason: What the model is told.
    """

    reason: str


@attrs.frozen
class Ask:
    """Let a person decide, through the registry's approvers.

    Attributes:
        reason: Why it is asked; also the model's text if nobody can be asked.
    """

    reason: str | None = None


PreDecision: TypeAlias = Allow | Deny | Ask


def _contexts(value: Iterable[JsonValue] | str) -> tuple[JsonValue, ...]:
    # A single text is the common case; iterating it would give one context a character.
    return (value,) if isinstance(value, str) else tuple(value)


@attrs.frozen
class Accept:
    """Let the outcome stand, or replace its content or its value.

    Attributes:
        content: New content for the model, or ``UNSET``; the value stays.
        value: A new value, validated and rendered again, or ``UNSET``. Not together with ``content``, and not on
            a failure.
        contexts: Extra contexts for the next request, after those of the tool.
    """

    content: object = UNSET
    value: object = UNSET
    contexts: tuple[JsonValue, ...] = attrs.field(default=(), converter=_contexts)


@attrs.frozen
class Block:
    """Turn the outcome into a failure.

    Attributes:
        feedback: What the model sees in its place: text, a block or several.
        contexts: Extra contexts for the next request; those of the tool are dropped.
    """

    feedback: object = ()
    contexts: tuple[JsonValue, ...] = attrs.field(default=(), converter=_contexts)


PostDecision: TypeAlias = Accept | Block


class ApprovalOutcome(enum.Enum):
    """What an approver answers (D5.1)."""

    ALLOWED_ONCE = "allowed-once"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    UNAVAILABLE = "unavailable"

    @classmethod
    def read(cls, answer: object) -> ApprovalOutcome:
        """The outcome an approver's answer means; what is outside the vocabulary means ``UNAVAILABLE``."""
        if isinstance(answer, cls):
            return answer
        try:
            return cls(cast("str", answer))
        except ValueError:
            return cls.UNAVAILABLE
