# ruff: noqa: INP001 - a script beside the pages, not a package
"""Measures the bugs of ``classic-bugs.md`` and writes their table: ``python docs/_classic_bugs.py``, four minutes."""

from __future__ import annotations

import re
import statistics
from collections.abc import Awaitable, Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import trio
import trio.testing

from quiesce.testing import Pct, RandomOrder, Strategy, find_failure

PAGE = Path(__file__).with_name("classic-bugs.md")
PLAIN_RUNS = 200
SEEDS = range(15)
MOST_RUNS = 1_000
STRATEGIES: dict[str, Callable[[int], Strategy]] = {
    "random": RandomOrder,
    "random, steps": lambda seed: RandomOrder(seed, "step"),
    "pct, depth 2": lambda seed: Pct(2, seed=seed),
    "pct, depth 3": lambda seed: Pct(3, seed=seed),
}
_MARK = "classic bugs"

Scenario = Callable[[], Awaitable[object]]


def scenarios() -> dict[str, Scenario]:
    """The programs of the page by name, made by running its blocks."""
    text = PAGE.read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "classic_bugs"}
    with redirect_stdout(StringIO()):
        for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - our own page
    return {name: names[name] for name in re.findall(r"^show\((\w+)\)$", text, re.MULTILINE)}


def plain_failures(scenario: Scenario, runs: int = PLAIN_RUNS) -> int:
    """How many of so many ordinary runs fail; one that stands still is ended by a deadline of virtual time."""

    async def bounded() -> None:
        with trio.fail_after(1_000):
            await scenario()

    failed = 0
    for _ in range(runs):
        try:
            trio.run(bounded, clock=trio.testing.MockClock(autojump_threshold=0))
        except (AssertionError, ExceptionGroup, trio.TooSlowError):
            failed += 1
    return failed


def runs_needed(scenario: Scenario, strategy: Strategy) -> int | None:
    """The number of the first run that fails."""
    found = find_failure(scenario, strategy=strategy, runs=MOST_RUNS)
    return None if found.failure is None else found.failure.run


def table() -> str:
    """The table of the page."""
    head = ["bug", f"plain, of {PLAIN_RUNS}", *STRATEGIES]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, scenario in scenarios().items():
        cells = [f"`{name}`", str(plain_failures(scenario))]
        for make in STRATEGIES.values():
            runs = [needed for seed in SEEDS if (needed := runs_needed(scenario, make(seed))) is not None]
            cells.append(f"{statistics.median_low(runs)}, {max(runs)}" if len(runs) == len(SEEDS) else "-")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Write the table."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- {_MARK}: begin -->", f"<!-- {_MARK}: end -->"
    before, rest = text.split(begin)
    PAGE.write_text(f"{before}{begin}\n{table()}\n{end}{rest.split(end)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
