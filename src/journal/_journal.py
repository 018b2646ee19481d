"""The journal protocol, and the journal that keeps everything in memory."""

from __future__ import annotations

from typing import Protocol

from ._events import Event

__all__ = ["Journal", "MemoryJournal"]


class Journal(Protocol):
    """Where a runtime records what happens.

    ``append`` is synchronous, so that recording can never be cancelled halfway; ``flush`` makes what was appended
    durable. If either raises, the batch starts nothing more and ends in a ``SchedulerFault``.
    """

    def append(self, event: Event) -> None:
        """Take one event. It must not block for long: it runs in the event loop."""
        ...

    async def flush(self) -> None:
        """Return when every event appended so far is durable. Runs where neither a cancel nor Ctrl-C can land."""
        ...


class MemoryJournal:
    """A journal in memory, for tests and for programs that keep no history of their own.

    Attributes:
        events: All events in the order of their recording.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []

    def append(self, event: Event) -> None:
        """See ``Journal``."""
        self.events.append(event)

    async def flush(self) -> None:
        """See ``Journal``; memory needs none."""
