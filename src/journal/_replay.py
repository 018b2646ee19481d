"""What the batches of a journal came to: outcomes ready to become messages, and how each batch ended."""

from __future__ import annotations

import os
from collections.abc import Iterable

import attrs

from ..registry import Outcome
from ._events import BatchEnd, BatchStart, BatchStatus, CallRequest, Event, ToolCallStarted, ToolResult
from ._rebuild import outcome_from_event
from ._sqlite_file import StrPath
from ._sqlite_read import read_events

__all__ = ["BatchReplay", "replay"]


@attrs.frozen
class BatchReplay:
    """One batch, from the log alone.

    Attributes:
        batch: Its identity.
        start: How it began, or ``None`` if that is not recorded.
        end: How it ended, or ``None`` if it runs still or was cut short.
        requests: Its calls in model order, as far as they are recorded: those that ``batch/start`` lists, or of a
            stream those whose turn came. Sub-calls are left out: they never become messages.
        outcomes: Its outcomes in model order, equal to those that were returned.
    """

    batch: str
    start: BatchStart | None
    end: BatchEnd | None
    requests: tuple[CallRequest, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def status(self) -> BatchStatus | None:
        """How it ended, or ``None`` if it runs still or was cut short."""
        return None if self.end is None else self.end.status

    @property
    def complete(self) -> bool:
        """Whether it ended and each of its calls has an outcome; not so after a fault, or before ``repair``."""
        return self.end is not None and [call.index for call in self.requests] == [one.index for one in self.outcomes]


def replay(source: StrPath | Iterable[Event]) -> list[BatchReplay]:
    """What each batch came to.

    Args:
        source: A journal file, or events in the order of their recording.

    Returns:
        One entry a batch, in the order in which they began; the list is the caller's.

    Raises:
        JournalFileError: See ``read_events``.

    Source: ``docs/design.md``, promise 8.
    """
    if isinstance(source, str | os.PathLike):
        source = read_events(source)
    found: dict[str, _Batch] = {}
    for event in source:
        batch = found.setdefault(event.batch, _Batch(event.batch))
        if isinstance(event, BatchStart):
            batch.start = event
        elif isinstance(event, BatchEnd):
            batch.end = event
        elif event.parent is None:
            if isinstance(event, ToolCallStarted):
                batch.requests[event.request.index] = event.request
            else:
                batch.results[event.index] = event
    return [batch.replayed() for batch in found.values()]


@attrs.define
class _Batch:
    batch: str
    start: BatchStart | None = None
    end: BatchEnd | None = None
    requests: dict[int, CallRequest] = attrs.field(factory=dict[int, CallRequest])
    results: dict[int, ToolResult] = attrs.field(factory=dict[int, ToolResult])

    def replayed(self) -> BatchReplay:
        listed = {} if self.start is None else {call.index: call for call in self.start.calls}
        return BatchReplay(
            batch=self.batch,
            start=self.start,
            end=self.end,
            requests=tuple(call for _, call in sorted({**self.requests, **listed}.items())),
            outcomes=tuple(outcome_from_event(result) for _, result in sorted(self.results.items())),
        )
