"""When a call may run: the conflict rule, the lane, batches, streams, sub-calls and the runtime."""

from ._batch import Batch
from ._conflicts import conflicts
from ._lane import Decision, Do, Lane, Verdict
from ._progress import BatchEvent, Committed, EventStream, Progress, Settled, Stalled, Started
from ._runtime import Runtime, open_runtime, run_calls
from ._states import TRANSITIONS, CallEvent, CallPhase, IllegalTransitionError
from ._stream import OutcomeStream

__all__ = [
    "TRANSITIONS",
    "Batch",
    "BatchEvent",
    "CallEvent",
    "CallPhase",
    "Committed",
    "Decision",
    "Do",
    "EventStream",
    "IllegalTransitionError",
    "Lane",
    "OutcomeStream",
    "Progress",
    "Runtime",
    "Settled",
    "Stalled",
    "Started",
    "Verdict",
    "conflicts",
    "open_runtime",
    "run_calls",
]
