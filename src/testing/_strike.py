"""Strike a run of trio at a moment that is found again by counting: the instrument, and the scenario's own marks."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal, TypeAlias, TypeVar, cast

import attrs
import trio

from ._origins import SPAWNER, shown, users_place
from ._where import all_tasks, calling_frame, line_of, outwards, place_of_task

__all__ = ["Failing", "Moment", "Probe", "Strike", "Striker"]

F = TypeVar("F", bound=Callable[..., Any])
Moment: TypeAlias = Literal["checkpoint", "event"]

_REASON = "quiesce.testing"
_TRIO = str(trio.__path__[0])
_HERE = __file__.rpartition("_strike")[0]


@attrs.frozen
class Strike:
    """What was struck.

    Attributes:
        at: ``checkpoint``, or the name of the event.
        line: Where the task stood that had just run, or is about to.
    """

    at: str
    line: str


class Probe:
    """Given to a scenario with a parameter, to mark the calls that matter to it.

    ``cancel_everywhere`` also cancels right before and right after each marked call; ``fail_everywhere`` makes each of
    them fail.
    """

    def __init__(
        self, before: Callable[[str, FrameType | None], None], after: Callable[[str, FrameType | None], None]
    ) -> None:
        self._before = before
        self._after = after

    def wrap(self, function: F) -> F:
        """Mark all calls of a function that is made through what this returns.

        Args:
            function: A collaborator of what is tested; async or not, and what is returned is the same.
        """
        name = getattr(function, "__qualname__", repr(function))
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def marked_async(*args: Any, **kwargs: Any) -> Any:
                caller = calling_frame()
                self._before(name, caller)
                value = await function(*args, **kwargs)
                self._after(name, caller)
                return value

            return cast("F", marked_async)

        @functools.wraps(function)
        def marked(*args: Any, **kwargs: Any) -> Any:
            caller = calling_frame()
            self._before(name, caller)
            value = function(*args, **kwargs)
            self._after(name, caller)
            return value

        return cast("F", marked)


class Failing:
    """Counts marked calls, from any thread, and makes the k-th raise.

    Attributes:
        calls: How many there were.
        raised: What was raised, once it was.
        struck: Where.
    """

    def __init__(self, k: int | None, error: Callable[[], Exception]) -> None:
        self.calls = 0
        self.raised: Exception | None = None
        self.struck: Strike | None = None
        self.probe = Probe(self._call, lambda _name, _caller: None)
        self._k = k
        self._error = error
        self._lock = threading.Lock()

    def _call(self, name: str, caller: FrameType | None) -> None:
        with self._lock:
            self.calls += 1
            if self.calls != self._k:
                return
        self.struck = Strike(f"call of {name}", shown(users_place(caller)) or name)
        self.raised = self._error()
        raise self.raised


class Striker(trio.abc.Instrument):
    """Counts the moments of one run and cancels its scope at one of them.

    Checkpoints are the ends of steps of the scenario's tasks. Events are moments between two of them at which a cancel
    can land in real life: in the middle of a step, where a call into trio that made another task able to run, or
    started one, comes back to its caller; after a timer, a descriptor or a thread has woken a task, before that runs;
    and the marks of the probe.

    Attributes:
        scope: What is cancelled.
        counts: How many moments of each kind there were.
        struck: Where it was cancelled, once it was.
        delivered: Whether the scenario's main task has been given a ``Cancelled`` that is this one's.
    """

    def __init__(self, kind: Moment | None = None, k: int | None = None) -> None:
        self.scope = trio.CancelScope()
        self.counts: dict[Moment, int] = {"checkpoint": 0, "event": 0}
        self.struck: Strike | None = None
        self.delivered = False
        self.probe = Probe(
            lambda name, caller: self._mark(f"call of {name}", caller),
            lambda name, caller: self._mark(f"return of {name}", caller),
        )
        self._target = kind, k
        self._main: trio.lowlevel.Task | None = None
        self._others: frozenset[trio.lowlevel.Task] = frozenset()
        self._current: trio.lowlevel.Task | None = None
        self._woken: set[trio.lowlevel.Task] = set()
        self._boundary: FrameType | None = None
        self._profiler_before: Any = None
        self._deferred: Strike | None = None

    def begin(self) -> None:
        """The scenario begins in the current task; tasks that are there already are not its own."""
        root = trio.lowlevel.current_root_task()
        assert root is not None
        self._main = self._current = trio.lowlevel.current_task()
        self._others = frozenset(all_tasks(root)) - {self._main}
        SPAWNER.set(weakref.ref(self._main))

    def end(self) -> None:
        """The scenario is over."""
        self._settle_deferred(strike=False)
        self._main = self._current = self._boundary = None
        self._woken.clear()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """See ``trio.abc.Instrument``."""
        if self._main is None or task in self._others:
            return
        self._current = task
        if task is self._main and self.struck is not None and _carries_ours(task):
            self.delivered = True
        if task in self._woken:
            self._woken.discard(task)
            if self._counted("event"):
                self._strike(Strike("woken", place_of_task(task)))

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """See ``trio.abc.Instrument``."""
        self._settle_deferred(strike=True)
        self._current = self._boundary = None
        if self._main is None or task in self._others:
            return
        if self._counted("checkpoint"):
            ended = getattr(task.coro, "cr_frame", None) is None
            self._strike(Strike("checkpoint", f"{place_of_task(task)}{' (it has ended)' if ended else ''}"))

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        """See ``trio.abc.Instrument``."""
        if self._main is None:
            return
        # It may be somebody's own context, entered just now; then threads are told by their own stack only.
        with contextlib.suppress(RuntimeError):
            task.context.run(SPAWNER.set, weakref.ref(task))
        self._middle_of_step("task_spawned")

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        """See ``trio.abc.Instrument``."""
        if self._main is None or task in self._others:
            return
        if self._current is None:
            self._woken.add(task)
        else:
            self._middle_of_step("task_scheduled")

    def _counted(self, kind: Moment) -> bool:
        """Count a moment; whether it is the one."""
        if self.struck is not None or self._deferred is not None:
            return False
        self.counts[kind] += 1
        return (kind, self.counts[kind]) == self._target

    def _strike(self, strike: Strike) -> None:
        self.struck = strike
        self.scope.cancel(_REASON)

    def _mark(self, at: str, caller: FrameType | None) -> None:
        # Another thread could not cancel; what it hands back wakes its task, which is an event of its own.
        if self._current is None or not trio.lowlevel.in_trio_task():
            return
        if self._counted("event"):
            self._strike(Strike(at, shown(users_place(caller)) or at))

    def _middle_of_step(self, at: str) -> None:
        """Within trio a cancel can land nowhere, so wait until the call into trio comes back to its caller."""
        if self._current is None or self.struck is not None or self._target[0] == "checkpoint":
            return  # nothing to count: looking at the stack is what costs most here
        found = _boundary(self._current)
        if found is None:
            return
        inner, caller = found
        if inner is self._boundary:  # one call that wakes many, or starts a task and schedules it, is one event
            return
        self._boundary = inner
        if not self._counted("event"):
            return
        code = caller.f_code
        self._deferred = Strike(at, line_of(code.co_filename, caller.f_lineno, code.co_qualname))
        self._profiler_before = sys.getprofile()

        def profile(frame: FrameType, event: str, _argument: Any) -> None:
            if frame is inner and event == "return":
                self._settle_deferred(strike=True)

        sys.setprofile(profile)

    def _settle_deferred(self, *, strike: bool) -> None:
        if self._deferred is not None:
            sys.setprofile(self._profiler_before)
            deferred, self._deferred = self._deferred, None
            if strike:
                self._strike(deferred)


def _boundary(task: trio.lowlevel.Task) -> tuple[FrameType, FrameType] | None:
    """Trio's outermost frame above the task's innermost own one, and that; ``None`` when trio was not called by it."""
    base = getattr(task.coro, "cr_frame", None)
    inner: FrameType | None = None
    own: tuple[FrameType, FrameType] | None = None
    for frame, _ in outwards(inspect.currentframe()):
        file = frame.f_code.co_filename
        if own is None and inner is not None and not file.startswith((_TRIO, _HERE)):
            own = inner, frame
        inner = frame
        if frame is base:
            return own
    return None


def _carries_ours(task: trio.lowlevel.Task) -> bool:
    """Whether a task is about to be given this module's ``Cancelled``.

    What it is given is private to trio. Where that cannot be read any more, swallowed cancels go unseen.
    """
    error = getattr(getattr(task, "_next_send", None), "error", None)
    return isinstance(error, trio.Cancelled) and getattr(error, "reason", None) == _REASON
