"""Hooks, an approver and a journal that play a script on the run's clock, and note what they saw."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias, cast

import attrs
import trio

from ..journal import Event
from ..registry import Accept, Allow, ApprovalOutcome, Ask, Block, Deny, FrozenDict, Outcome, Registry, Scope
from ._fakes import Raises, Returns, script_of
from ._recording import Invocation, Recorder

__all__ = ["Decides", "HookKind", "Move", "Proceeds", "ScriptedHook", "ScriptedJournal", "scripted_hook"]

HookKind: TypeAlias = Literal["pre_execute", "approver", "around", "post_execute"]
Proceed: TypeAlias = Callable[[], Awaitable[Any]]
_seconds = attrs.validators.ge(0.0)


@attrs.frozen
class Decides:
    """Decide after a while.

    Attributes:
        decision: ``Allow``, ``Deny`` or ``Ask`` of a pre hook, ``Accept`` or ``Block`` of a post hook, an
            ``ApprovalOutcome`` or its value of an approver. Not checked: a wrong one is a test too.
        after: Seconds first.
    """

    decision: object
    after: float = attrs.field(default=0.0, validator=_seconds)


@attrs.frozen
class Proceeds:
    """Ask the hooks inside and, of an around hook, the body; hand on what they say.

    Attributes:
        after: Seconds first.
        times: Around hooks: most attempts; it tries again while the outcome is a failure.
        shield: Around hooks: whether the attempts are shielded from the caller's cancel.
        within: Around hooks: seconds of a deadline around all attempts, or ``None``. When it runs out first, the
            call fails with ``TOOL_TIMEOUT``.
    """

    after: float = attrs.field(default=0.0, validator=_seconds)
    times: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    shield: bool = False
    within: float | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.gt(0)))

    async def attempts(self, call: Any, proceed: Proceed) -> Outcome:
        """The around hook's part."""
        # Shields all attempts if the test says so: that is what it fakes.
        with trio.CancelScope(shield=self.shield):
            if self.within is None:
                return await self._tries(proceed)
            with call.deadline(self.within) as deadline:
                outcome = await self._tries(proceed)
            if deadline.fired:
                return cast("Outcome", call.fail(f"not over after {self.within:g} s", "TOOL_TIMEOUT"))
            return outcome
        raise AssertionError  # pragma: no cover - this scope is never cancelled; the type checkers cannot know

    async def _tries(self, proceed: Proceed) -> Outcome:
        outcome: Outcome = await proceed()
        for _ in range(self.times - 1):
            if not outcome.is_error:
                break
            outcome = await proceed()
        return outcome


Move: TypeAlias = "Decides | Proceeds | Raises | Returns | Allow | Deny | Ask | Accept | Block | ApprovalOutcome | str"
"""What one call of a scripted hook does; a bare decision is decided at once. ``Returns`` is for around hooks."""


class ScriptedHook:
    """A hook that plays a script. Made by ``scripted_hook``.

    Attributes:
        kind: The method of a registry that registers it.
    """

    def __init__(self, kind: HookKind, moves: tuple[Move, ...]) -> None:
        self.kind: HookKind = kind
        self._moves: tuple[Move, ...] = moves or (Proceeds(),)
        self._recorder = Recorder()

    def __repr__(self) -> str:
        return f"<ScriptedHook {self.kind}, {len(self.invocations)} calls>"

    @property
    def invocations(self) -> tuple[Invocation, ...]:
        """Every call of the hook so far, in the order in which they began; an approver sees no arguments."""
        return self._recorder.invocations

    def register(self, place: Registry | Scope) -> None:
        """Register it in a registry or scope, inside all hooks of its kind that are there."""
        getattr(place, self.kind)(self)

    async def __call__(self, call: Any, *rest: Any) -> Any:
        """Be the hook: ``(call, proceed)``, or ``(call, outcome, proceed)`` after the call."""
        proceed: Proceed = rest[-1]
        name = call.tool_name if self.kind == "approver" else call.name
        arguments = None if self.kind == "approver" else call.arguments

        def play(number: int) -> Awaitable[object]:
            return self._play(script_of(self._moves, number), call, proceed)

        return await self._recorder.note(name, call.call_id, arguments, play)

    async def _play(self, move: Move, call: Any, proceed: Proceed) -> object:
        if isinstance(move, Raises):
            return await move.play(FrozenDict(), call)  # which looks at neither
        if isinstance(move, Decides | Proceeds | Returns):
            await trio.sleep(move.after)
        match move:
            case Decides(decision=decision):
                return decision
            case Proceeds():
                return await (move.attempts(call, proceed) if self.kind == "around" else proceed())
            case Returns(value=value):
                return call.succeed(value(call.arguments) if callable(value) else value)
            case _:
                return move


def scripted_hook(kind: HookKind, *moves: Move) -> ScriptedHook:
    """A hook whose first call makes the first move, the second the second, and whose last move is repeated.

    Args:
        kind: ``pre_execute``, ``approver``, ``around`` or ``post_execute``.
        moves: A decision as it is, ``Decides(decision, after=seconds)``, ``Proceeds(...)`` or ``Raises(...)``; of an
            around hook ``Proceeds``, ``Raises``, or ``Returns(value)`` to answer in place of the body.
            ``Proceeds()`` if there is none.

    Returns:
        The hook: ``it.register(registry)``, or ``registry.pre_execute(it)`` and so on; then look at
        ``it.invocations``.

    Raises:
        ValueError: There is no such kind, or a move is not one for it.
    """
    if kind not in ("pre_execute", "approver", "around", "post_execute"):
        msg = f"scripted_hook({kind!r}): kind must be 'pre_execute', 'approver', 'around' or 'post_execute'"
        raise ValueError(msg)
    # An around hook never decides, and only an around hook answers in place of the body.
    decisions = (Decides, Allow, Deny, Ask, Accept, Block, ApprovalOutcome, str)
    refused = decisions if kind == "around" else (Returns,)
    wrong = [move for move in moves if isinstance(move, refused)]
    if wrong:
        msg = f"scripted_hook({kind!r}): {wrong[0]!r:.80} is no move of such a hook"
        raise ValueError(msg)
    return ScriptedHook(kind, moves)


class ScriptedJournal:
    """A journal in memory that takes its time, and fails when it is told to.

    Attributes:
        events: All events that were appended, in order; one whose append failed is not among them.
        flushes: When each flush began, on trio's clock.
    """

    def __init__(
        self,
        *,
        flush_takes: float = 0.0,
        append_fails_at: int | None = None,
        flush_fails_at: int | None = None,
        error: Exception | None = None,
    ) -> None:
        """Make a journal.

        Args:
            flush_takes: Seconds of each flush.
            append_fails_at: The number of the append that raises, from 1, or ``None``; those after it work again.
            flush_fails_at: The number of the flush that raises once its seconds are over.
            error: What is raised; by default ``OSError`` with ``ENOSPC``.
        """
        self.events: list[Event] = []
        self.flushes: list[float] = []
        self._takes = flush_takes
        self._append_fails_at = append_fails_at
        self._flush_fails_at = flush_fails_at
        self._error = OSError(errno.ENOSPC, "no space left, says the script") if error is None else error
        self._appends = 0

    def append(self, event: Event) -> None:
        """See ``Journal``."""
        self._appends += 1
        if self._appends == self._append_fails_at:
            raise self._error.with_traceback(None)
        self.events.append(event)

    async def flush(self) -> None:
        """See ``Journal``."""
        self.flushes.append(trio.current_time())
        number = len(self.flushes)
        await trio.sleep(self._takes)
        if number == self._flush_fails_at:
            raise self._error.with_traceback(None)
