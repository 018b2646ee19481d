"""The live table on a terminal, drawn by ``rich``."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

import attrs
import trio

from ..registry import ToolCall, canonical_text
from ..schedule import BatchEvent, Committed, Progress, Settled, Stalled, Started

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

__all__ = ["LiveTable"]

_WIDEST = 60


@attrs.define
class Row:
    """What the table shows of a call."""

    call: ToolCall
    state: str = "queued"
    style: str = "dim"
    started: float | None = None
    ended: float | None = None
    note: str = ""

    def seconds(self) -> str:
        """How long it has run, or ran."""
        if self.started is None:
            return ""
        return f"{(trio.current_time() if self.ended is None else self.ended) - self.started:.1f} s"


class LiveTable:
    """One row a call, redrawn at each event and each tick; a context manager."""

    def __init__(self, calls: Sequence[ToolCall], console: Console, live: Live) -> None:
        self._rows = [Row(call) for call in calls]
        self._console = console
        self._live = live

    @classmethod
    def open(cls, calls: Sequence[ToolCall], stream: TextIO) -> LiveTable | None:
        """A table on a terminal, or ``None`` if ``rich`` is not installed (``pip install 'quiesce[cli]'``)."""
        try:
            from rich.console import Console  # noqa: PLC0415 - an extra
            from rich.live import Live  # noqa: PLC0415 - an extra
        except ImportError:
            return None
        console = Console(file=stream)
        # auto_refresh would draw from a thread of its own while this task changes the rows.
        return cls(calls, console, Live(console=console, auto_refresh=False))

    def show(self, event: BatchEvent) -> None:
        """Take an event into the table."""
        row = self._rows[event.index]
        match event:
            case Started(time=time):
                row.state, row.style, row.started = "running", "cyan", time
            case Progress(progress=progress):
                row.note = progress if isinstance(progress, str) else canonical_text(progress)
            case Settled(time=time):
                row.state, row.ended = "settled", time
            case Stalled(line=line):
                row.state, row.style, row.note = "stalled", "yellow", line or ""
            case Committed(outcome=outcome):
                row.state, row.style = ("failed", "red") if outcome.is_error else ("ok", "green")
                row.note = outcome.code or ""
        self._draw()

    async def tick(self, seconds: float) -> None:
        """Redraw from time to time, so that the clock of a running call moves; until cancelled."""
        while True:
            await trio.sleep(seconds)
            self._draw()

    def __enter__(self) -> LiveTable:
        self._live.start()
        self._draw()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._draw()
        self._live.stop()

    def _draw(self) -> None:
        self._live.update(self._table(), refresh=True)

    def _table(self) -> Table:
        from rich.markup import escape  # noqa: PLC0415 - an extra
        from rich.table import Table  # noqa: PLC0415 - an extra

        table = Table(box=None, show_header=False)
        for index, row in enumerate(self._rows):
            arguments = canonical_text(row.call.arguments)[:_WIDEST]
            state = f"[{row.style}]{row.state}[/]"
            table.add_row(
                str(index), escape(row.call.name), escape(arguments), state, row.seconds(), escape(row.note)[:_WIDEST]
            )
        return table
