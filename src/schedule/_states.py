"""The states of a call and the events that move it: one table, from which the diagram in the docs is drawn."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["TRANSITIONS", "CallEvent", "CallPhase", "IllegalTransitionError", "transition"]


class CallPhase(enum.Enum):
    """Where a call stands between being handed in and being recorded."""

    QUEUED = "queued"
    """Waits for its turn."""
    PREPARING = "preparing"
    """Its pre hooks, approval and guards run."""
    READY = "ready"
    """Prepared; waits for calls that hold conflicting keys, or for its tool's limit."""
    RUNNING = "running"
    """Dispatched: its around hooks and body run."""
    SETTLED = "settled"
    """Has exactly one outcome; waits for the commits before it."""
    ABANDONED = "abandoned"
    """Will never be prepared; gets its outcome and record without hooks."""
    COMMITTING = "committing"
    """Its post hooks and its record are under way."""
    COMMITTED = "committed"
    """Recorded, in model order."""


class CallEvent(enum.Enum):
    """What can happen to a call."""

    PREPARE = "prepare"
    START = "start"
    HOLD = "hold"
    SETTLE = "settle"
    ABANDON = "abandon"
    COMMIT = "commit"
    COMMITTED = "committed"


_P, _E = CallPhase, CallEvent

TRANSITIONS: Final[Mapping[tuple[CallPhase, CallEvent], CallPhase]] = MappingProxyType(
    {
        (_P.QUEUED, _E.PREPARE): _P.PREPARING,
        (_P.QUEUED, _E.ABANDON): _P.ABANDONED,
        (_P.PREPARING, _E.START): _P.RUNNING,
        (_P.PREPARING, _E.HOLD): _P.READY,
        (_P.PREPARING, _E.SETTLE): _P.SETTLED,
        (_P.READY, _E.START): _P.RUNNING,
        (_P.READY, _E.SETTLE): _P.SETTLED,
        (_P.RUNNING, _E.SETTLE): _P.SETTLED,
        (_P.SETTLED, _E.COMMIT): _P.COMMITTING,
        (_P.ABANDONED, _E.COMMIT): _P.COMMITTING,
        (_P.COMMITTING, _E.COMMITTED): _P.COMMITTED,
    }
)


class IllegalTransitionError(Exception):
    """An event met a state that does not expect it: a bug in quiesce. Nothing was changed."""


def transition(index: int, phase: CallPhase, event: CallEvent) -> CallPhase:
    """The state after ``event``.

    Raises:
        IllegalTransitionError: The table does not list the pair.
    """
    try:
        return TRANSITIONS[phase, event]
    except KeyError:
        msg = f"call {index} is {phase.value}: it cannot {event.value}"
        raise IllegalTransitionError(msg) from None
