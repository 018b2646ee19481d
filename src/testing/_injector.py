"""Makes the runs of one injection, and judges what came of each."""

from __future__ import annotations

import gc
import inspect
import re
import traceback
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

import attrs

from ._errors import Deadlock, TooManySteps
from ._groups import leaves
from ._held import only_new_objects
from ._leftovers import Leftover, Watch
from ._run import Limits, run_once
from ._strategies import fixed
from ._strike import Failing, Probe, Strike, Striker
from ._where import line_of, users_line_of

__all__ = ["Attempt", "Finding", "Injection", "InjectionError", "Injector"]

_GRACE = 1.0
_GRACE_AFTER_FINDING_A_THREAD = 0.05
_MOST_SHOWN = 20


@attrs.frozen
class Finding:
    """What was wrong after one injection.

    Attributes:
        k: The number of the moment, from 1 among those of its kind; 0 for a run in which nothing was injected.
        at: ``checkpoint``, the name of the event, ``call of ...``, or ``end`` when nothing was injected.
        struck: ``path:line in function`` where the struck task stood.
        what: What was wrong.
        line: The line that it comes from, as far as that is known.
    """

    k: int
    at: str
    struck: str
    what: str
    line: str | None


@attrs.frozen
class Injection:
    """What was tried, when nothing was found.

    Attributes:
        runs: How many runs were made, the two without an injection included.
        points: How many moments were struck.
    """

    runs: int
    points: int


class InjectionError(AssertionError):
    """Some injections left something over, or ended otherwise than they may.

    The message tells each finding once, with all the moments it was seen at.

    Attributes:
        findings: All, in the order of the runs.
    """

    def __init__(self, name: str, findings: tuple[Finding, ...], runs: int) -> None:
        super().__init__("\n".join(_report(name, findings, runs)))
        self.findings = findings


@attrs.define
class Attempt:
    """One run: how it is struck, and what came of it."""

    striker: Striker
    probe: Probe
    k: int = 0
    failing: Failing | None = None
    returned: bool = False
    error: Exception | None = None
    leftovers: tuple[Leftover, ...] = ()

    @property
    def struck(self) -> Strike:
        found = self.striker.struck if self.failing is None else self.failing.struck
        return found or Strike("end", "the end of the scenario")


@attrs.define
class Injector:
    """Makes the runs of one injection."""

    scenario: Callable[..., Awaitable[object]]
    limits: Limits
    allowed: tuple[type[Exception], ...]
    check: Callable[[], object] | None
    stop_early: bool
    runs: int = 0
    grace: float = _GRACE
    older_locks: tuple[weakref.ref[Any], ...] = ()

    def run(self, plain: Callable[[], Attempt], aimed: Callable[[Attempt], Iterator[Attempt]]) -> Injection:
        """Make all attempts.

        Args:
            plain: Makes one that injects nothing.
            aimed: Makes the others, one at a time, from what the plain one counted.
        """
        points = 0
        with only_new_objects() as self.older_locks:
            self._one(plain())  # what only the first run leaves is a cache
            counting = plain()
            findings = self._one(counting)
            for attempt in () if findings else aimed(counting):
                findings += self._one(attempt)
                points += attempt.struck.at != "end"
                if findings and self.stop_early:
                    break
        if findings:
            raise InjectionError(_name(self.scenario), tuple(findings), self.runs)
        return Injection(self.runs, points)

    def _one(self, attempt: Attempt) -> list[Finding]:
        self.runs += 1
        collecting = gc.isenabled()
        gc.disable()
        try:
            with Watch(grace=self.grace, older_locks=self.older_locks) as watch:
                run = run_once(lambda: self._whole(attempt, watch), fixed(()), "batch", self.limits, [attempt.striker])
        finally:
            if collecting:
                gc.enable()
        attempt.error = cast("Exception | None", run.error) or attempt.error
        if attempt.k == 0 and attempt.error is not None:
            attempt.error.add_note("quiesce.testing: this is the run in which nothing was injected")
            raise attempt.error
        findings = [_finding(attempt, what, line) for what, line in self._violations(attempt)]
        gc.collect()  # cheap, since it only sees what is new
        return findings

    async def _whole(self, attempt: Attempt, watch: Watch) -> None:
        """The scenario, and around it what must happen within its run."""
        arguments = (attempt.probe,) if _takes_probe(self.scenario) else ()
        watch.begin()
        attempt.striker.begin()
        try:
            with attempt.striker.scope:
                await self.scenario(*arguments)
                attempt.returned = True
        except Exception as raised:  # noqa: BLE001 - judged after the run
            attempt.error = raised
        attempt.striker.end()
        if attempt.error is not None and attempt.k:
            _let_go(attempt.error)
        attempt.leftovers = watch.compare()

    def _violations(self, attempt: Attempt) -> Iterator[tuple[str, str | None]]:
        error = attempt.error
        injected = None if attempt.failing is None else attempt.failing.raised
        if isinstance(error, Deadlock | TooManySteps):
            yield f"never settled: {error}", None
        elif error is not None and not _may_raise(error, self.allowed, injected):
            yield f"raised {type(error).__name__}: {error}", _raised_at(error)
        if attempt.returned and attempt.striker.delivered:
            yield "swallowed the cancel: its main task was given Cancelled, and it returned", None
        for left in attempt.leftovers:
            if left.kind == "thread":
                self.grace = _GRACE_AFTER_FINDING_A_THREAD
            yield f"{left.kind} left over: {left.what}", left.line
        if self.check is not None:
            try:
                self.check()
            except AssertionError as failed:
                if attempt.k == 0:
                    raise
                yield f"check failed: {failed}", _raised_at(failed)


def _finding(attempt: Attempt, what: str, line: str | None) -> Finding:
    return Finding(attempt.k, attempt.struck.at, attempt.struck.line, what, line)


def _takes_probe(scenario: Callable[..., object]) -> bool:
    parameters = inspect.signature(scenario).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(found.kind in positional and found.default is found.empty for found in parameters)


def _may_raise(error: BaseException, allowed: tuple[type[Exception], ...], injected: Exception | None) -> bool:
    def allows(leaf: BaseException | None) -> bool:
        while leaf is not None:
            if isinstance(leaf, allowed) or leaf is injected:
                return True
            leaf = leaf.__cause__ if injected is not None else None
        return False

    return all(map(allows, leaves(error)))


def _let_go(error: BaseException) -> None:
    """Free what the frames of a traceback hold, as would be freed if nobody kept the error."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        found = pending.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        traceback.clear_frames(found.__traceback__)
        pending += [found.__cause__, found.__context__]
        if isinstance(found, BaseExceptionGroup):
            pending += cast("BaseExceptionGroup[BaseException]", found).exceptions


def _raised_at(error: BaseException) -> str | None:
    leaf = next(leaves(error))
    frames = list(traceback.walk_tb(leaf.__traceback__))
    place = users_line_of(iter(reversed(frames)))
    return None if place is None else line_of(place[0].co_filename, place[1], place[0].co_qualname)


def _name(scenario: Callable[..., object]) -> str:
    return str(getattr(scenario, "__qualname__", None) or getattr(scenario, "func", scenario))


def _report(name: str, findings: tuple[Finding, ...], runs: int) -> Iterator[str]:
    """Each finding once, with the moments it was seen at."""
    alike: dict[tuple[str, str | None], list[Finding]] = {}
    for finding in findings:
        # Numbers and random names differ from run to run; where the line is known, it and the kind say enough.
        label = re.sub(r"\d+", "#", finding.what) if finding.line is None else finding.what.partition(":")[0]
        alike.setdefault((label, finding.line), []).append(finding)
    yield f"{name}: {len(alike)} {'finding' if len(alike) == 1 else 'findings'} in {runs} runs"
    for group in list(alike.values())[:_MOST_SHOWN]:
        first = group[0]
        yield f"- {first.what}"
        if first.line is not None:
            yield f"    from {first.line}"
        for at, found in _by_moment(group).items():
            yield f"    at {at} {_ranges([finding.k for finding in found])}, first struck at {found[0].struck}"
    if len(alike) > _MOST_SHOWN:
        yield f"and {len(alike) - _MOST_SHOWN} more: see the findings attribute"


def _by_moment(findings: list[Finding]) -> dict[str, list[Finding]]:
    grouped: dict[str, list[Finding]] = {}
    for finding in findings:
        grouped.setdefault(finding.at, []).append(finding)
    return grouped


def _ranges(numbers: list[int]) -> str:
    """``1-3, 7``."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        elif not ranges or number != ranges[-1][1]:
            ranges.append([number, number])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)
