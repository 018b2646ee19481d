"""What is known of a call that a fault left open."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from ._values import Outcome

__all__ = ["CallState", "CallStatus"]


CallState: TypeAlias = Literal["committed", "started", "never_started"]


@attrs.frozen
class CallStatus:
    """The honest status of one call when its batch ended in a fault.

    Attributes:
        index: The call's place in its batch, from 0.
        call_id: The provider's label.
        name: The tool's name.
        state: ``committed``, ``started`` (the body was invoked, its outcome is not recorded) or
            ``never_started``.
        outcome: The committed outcome, else ``None``.
    """

    index: int
    call_id: str
    name: str
    state: CallState
    outcome: Outcome | None = None
