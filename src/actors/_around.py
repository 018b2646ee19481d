"""Around hooks: the onion of wrappers between the actor and the body."""

from __future__ import annotations

import attrs
import trio

from ..errors import HookError
from ..registry import AroundHook, ErrorInfo, Failure, HookSpan, Outcome, Success, as_content, freeze
from ._body import run_body
from ._contract import replaced_value
from ._execution import Execution
from ._failures import (
    abort,
    failure_from,
    first_interrupt,
    only_cancelled,
    overtaken,
    truthful,
    truthful_code,
)
from ._invoke import call_unprotected
from ._proceed import Proceed
from ._views import AroundView

__all__ = ["run_around"]


async def run_around(execution: Execution, hooks: tuple[AroundHook, ...]) -> Outcome:
    """Run the wrappers, the first outermost, around the body.

    Returns:
        A minted outcome, whatever the wrappers do.

    Source: ``spec/behaviour.md`` C6.8-C6.11; ``docs/design.md``, Cancellation.
    """
    start = trio.current_time()
    execution.host.watch_caller(execution)
    try:
        return await _Wrapper(execution, AroundView(execution), hooks, 0).run()
    finally:
        execution.spans.append(HookSpan("around", start, trio.current_time()))


class _Wrapper:
    """One wrapper and what is inside it."""

    def __init__(self, execution: Execution, view: AroundView, hooks: tuple[AroundHook, ...], position: int) -> None:
        self._execution = execution
        self._view = view
        self._hooks = hooks
        self._position = position
        self._last: Outcome | None = None

    async def run(self) -> Outcome:
        hook = self._hooks[self._position]
        proceed = Proceed(self._inside, hook, self._execution.cancel_body)
        try:
            returned = await call_unprotected(hook, self._view, proceed)
            return self._checked(returned, hook)
        except BaseException as error:  # noqa: ASYNC103, BLE001 - sorted by kind in one place
            return self._ended_by(error)  # noqa: ASYNC104 - the call actor makes it data
        finally:
            await proceed.end()  # noqa: ASYNC102 - shielded where it waits at all

    async def _inside(self) -> Outcome:
        inside = self._position + 1
        if inside == len(self._hooks):
            self._last = await run_body(self._execution, own_scope=True)
        else:
            self._last = await _Wrapper(self._execution, self._view, self._hooks, inside).run()
        return self._last

    def _ended_by(self, error: BaseException) -> Outcome:
        execution = self._execution
        if only_cancelled(error):
            outcome = abort(execution) if self._last is None else overtaken(execution, self._last)
            return self._as_it_is_now(outcome) if outcome is self._last else execution.mint(outcome)
        interrupt = first_interrupt(error)
        if interrupt is not None:
            execution.host.interrupted(interrupt)
        execution.contexts.clear()
        return execution.mint(failure_from(execution, error), post_allowed=False)

    def _checked(self, returned: object, hook: AroundHook) -> Outcome:
        execution = self._execution
        if isinstance(returned, Success | Failure):
            minted = execution.minted(returned) is not None
            return self._as_it_is_now(returned) if minted else self._minted_again(returned)
        error = HookError(
            f"around hook {hook!r} returned {returned!r:.80}; return an Outcome, such as what proceed() gave"
        )
        return execution.mint(failure_from(execution, error), post_allowed=False)

    def _as_it_is_now(self, outcome: Outcome) -> Outcome:
        """A minted outcome, brought up to date: since it was made the body may have been invoked again."""
        current = truthful(self._execution, outcome)
        if current is outcome:
            return outcome
        return self._execution.mint(current, post_allowed=bool(self._execution.minted(outcome)))

    def _minted_again(self, returned: Outcome) -> Outcome:
        """Take over an outcome that was made elsewhere: a success is checked anew, a failure keeps what it says."""
        execution = self._execution
        if isinstance(returned, Failure):
            return execution.mint(_taken_over(execution, returned))
        outcome = replaced_value(execution, returned.value)
        if isinstance(outcome, Failure):
            return execution.mint(outcome, post_allowed=False)
        kept = attrs.evolve(outcome, contexts=returned.contexts, concludes_turn=returned.concludes_turn)
        return execution.mint(kept)


def _taken_over(execution: Execution, returned: Failure) -> Failure:
    """A failure that a hook made, as one of this call; what the hook put in it is read like any answer of a hook."""
    call = execution.call
    return attrs.evolve(
        returned,
        call_id=call.call_id,
        name=call.name,
        index=execution.index,
        effect=execution.effect,
        error=ErrorInfo(
            str(returned.error.message), str(returned.error.name), truthful_code(execution, returned.error.code)
        ),
        content=as_content(returned.content),
        contexts=tuple(returned.contexts),
        late_value=freeze(returned.late_value),
    )
