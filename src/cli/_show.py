"""Showing a batch: live on a terminal, as plain lines elsewhere; and its outcomes in the end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

import trio

from ..registry import Outcome, TextBlock, ToolCall
from ..schedule import BatchEvent, Committed, EventStream, Progress, Settled, Stalled, Started

__all__ = ["outcome_line", "print_outcomes", "show_live"]

TICK = 0.25
"""Seconds between two looks at the clock on a terminal."""


async def show_live(events: EventStream, calls: Sequence[ToolCall], stream: TextIO | None = None) -> None:
    """Follow a batch to its end.

    Args:
        events: Its events.
        calls: Its calls in model order.
        stream: Where to; standard error if omitted. ``rich`` draws on a terminal, if it is installed.
    """
    shown = sys.stderr if stream is None else stream
    table = None
    if shown.isatty():
        from ._live import LiveTable  # noqa: PLC0415 - rich is an extra, and slow to import where it is not used

        table = LiveTable.open(calls, shown)
    if table is None:
        async for event in events:
            print(event_line(event), file=shown, flush=True)
        return
    with table:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(table.tick, TICK)
            async for event in events:
                table.show(event)
            nursery.cancel_scope.cancel()


def event_line(event: BatchEvent) -> str:
    """One plain line for an event."""
    call = f"{event.index} {event.name} ({event.call_id})"
    match event:
        case Started():
            return f"started   {call}"
        case Progress(progress=progress):
            return f"progress  {call}: {progress}"
        case Settled(is_error=is_error):
            return f"settled   {call}: {'failed' if is_error else 'ok'}"
        case Committed(outcome=outcome):
            return f"committed {call}: {outcome.code or ('failed' if outcome.is_error else 'ok')}"
        case Stalled(running_for=running_for, line=line):
            return f"stalled   {call}: {running_for:.1f} s, at {line or 'an unknown line'}"


def outcome_line(outcome: Outcome) -> str:
    """The headline of an outcome."""
    state = "ok" if not outcome.is_error else f"FAILED {outcome.code or 'without a code'}"
    return f"[{outcome.index}] {outcome.name} ({outcome.call_id}): {state}, effect {outcome.effect.value}"


def print_outcomes(outcomes: Iterable[Outcome]) -> None:
    """Print every outcome in model order, with what the model sees of it."""
    for outcome in outcomes:
        print(outcome_line(outcome))
        for block in outcome.content:
            shown = block.text if isinstance(block, TextBlock) else f"[{block.type} content]"
            for line in shown.splitlines():
                print(f"    {line}")
    sys.stdout.flush()
