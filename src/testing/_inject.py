"""Inject a cancel, or a failing collaborator, at every place where one can happen, and look what is left after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Literal, TypeAlias

from ._injector import Attempt, Injection, Injector
from ._run import ClockKind, Limits
from ._strike import Failing, Moment, Probe, Striker

__all__ = ["Cancels", "ProbedScenario", "cancel_everywhere", "fail_everywhere"]

ProbedScenario: TypeAlias = Callable[[Probe], Awaitable[object]]
Cancels: TypeAlias = Literal["checkpoints", "events", "all"]


def cancel_everywhere(  # noqa: PLR0913 - each is an option of its own, and given by name
    scenario: Callable[[], Awaitable[object]] | ProbedScenario,
    *,
    cancels: Cancels = "all",
    allowed: tuple[type[Exception], ...] = (),
    check: Callable[[], object] | None = None,
    clock: ClockKind = "virtual",
    max_steps: int = 100_000,
    patience: float = 5.0,
    stride: int = 1,
    stop_early: bool = False,
) -> Injection:
    """Run an async callable once for each moment at which it can be cancelled, cancel it there, and look what is left.

    Two runs without a cancel come first: one to warm up what is opened once and kept, one to count the moments. Then
    the scope around the scenario is cancelled after the k-th step of its tasks, for each k, and at the k-th event
    between two checkpoints: where a call into trio that woke or started a task comes back to its caller, where a timer,
    descriptor or thread has woken a task that has not run yet, and right before and after each call that the scenario
    marked with its ``Probe``. Tasks run in the plain order, so the same scenario has the same moments. One that
    depends on threads, processes or real time may have others in each run.

    After each run: the scenario must have come to its end; it must have raised nothing, besides the ``Cancelled``, that
    is not in ``allowed``; nothing may be left over (see ``watch_leftovers``; tasks too), looked for at the moment when
    the scenario returns and with the garbage collector off; ``check`` must pass. A ``Cancelled`` that its main task was
    given and that did not come out again was swallowed; one that a child task swallowed is not noticed, nor is one
    that never was delivered since no checkpoint followed.

    Call it from a plain function, not from a test that is async.

    Args:
        scenario: What to run; must build all it uses. Takes nothing, or a ``Probe``.
        cancels: Which moments.
        allowed: What a cancelled scenario may raise, also in groups.
        check: Called after each run; its ``AssertionError`` is a finding.
        clock: See ``explore``.
        max_steps: See ``explore``.
        patience: See ``explore``.
        stride: Take every n-th moment only, from the first.
        stop_early: Whether to stop after the first run in which something was found.

    Returns:
        How much was tried, when nothing was found.

    Raises:
        InjectionError: Something was found.
        Exception: What the scenario raises when nothing is injected.
        RuntimeError: A run of trio is going on in this thread.
        ValueError: An argument makes no sense.

    Source: ours; docs/testing.md.
    """
    if cancels not in {"checkpoints", "events", "all"} or stride < 1:
        msg = f"cancels must be 'checkpoints', 'events' or 'all' and stride at least 1, got {cancels!r} and {stride!r}"
        raise ValueError(msg)
    injector = Injector(scenario, Limits(clock, max_steps, patience), allowed, check, stop_early)

    def cancelled(k: int = 0, kind: Moment | None = None) -> Attempt:
        striker = Striker(kind, k)
        return Attempt(striker, striker.probe, k)

    def aimed(plain: Attempt) -> Iterator[Attempt]:
        kinds: tuple[Moment, ...] = ("checkpoint", "event")
        for kind in kinds:
            if cancels in {"all", f"{kind}s"}:
                for k in range(1, plain.striker.counts[kind] + 1, stride):
                    yield cancelled(k, kind)

    return injector.run(cancelled, aimed)


def fail_everywhere(  # noqa: PLR0913 - as above
    scenario: ProbedScenario,
    *,
    error: Exception | Callable[[], Exception] | None = None,
    allowed: tuple[type[Exception], ...] = (),
    check: Callable[[], object] | None = None,
    clock: ClockKind = "virtual",
    max_steps: int = 100_000,
    patience: float = 5.0,
    stride: int = 1,
    stop_early: bool = False,
) -> Injection:
    """Run a scenario once for each call that it marked, let that call fail, and look what is left.

    Two runs without a failure come first, as with ``cancel_everywhere``. Then the k-th call of a marked function raises
    ``error`` instead of calling it, for each k. After each run the same holds as there; what the scenario raises may be
    that very error, alone, in a group, or as the ``__cause__`` of another, or it may raise nothing.

    Args:
        scenario: Takes a ``Probe`` and marks its collaborators with it; must build all it uses.
        error: What the failing call raises, or what makes it; an ``OSError`` if omitted.
        allowed: What else the scenario may raise.
        check: See ``cancel_everywhere``.
        clock: See ``explore``.
        max_steps: See ``explore``.
        patience: See ``explore``.
        stride: Take every n-th call only, from the first.
        stop_early: See ``cancel_everywhere``.

    Returns:
        How much was tried, when nothing was found.

    Raises:
        InjectionError: Something was found.
        Exception: What the scenario raises when nothing is injected.
        RuntimeError: A run of trio is going on in this thread.
        ValueError: An argument makes no sense.

    Source: ours; docs/testing.md.
    """
    if stride < 1:
        msg = f"stride must be at least 1, got {stride!r}"
        raise ValueError(msg)
    injector = Injector(scenario, Limits(clock, max_steps, patience), allowed, check, stop_early)

    def make() -> Exception:
        if error is None:
            return OSError("injected by quiesce.testing")
        made = error if isinstance(error, Exception) else error()
        made.__cause__ = made.__context__ = None
        return made.with_traceback(None)

    def failed(k: int = 0) -> Attempt:
        failing = Failing(k, make)
        return Attempt(Striker(), failing.probe, k, failing)

    def aimed(plain: Attempt) -> Iterator[Attempt]:
        calls = 0 if plain.failing is None else plain.failing.calls
        if not calls:
            msg = "no call was marked, so none can fail: give the scenario a parameter, and wrap with its probe.wrap()"
            raise ValueError(msg)
        for k in range(1, calls + 1, stride):
            yield failed(k)

    return injector.run(failed, aimed)
