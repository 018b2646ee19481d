"""What a body gets when it asks for a ``RunContext``."""

from __future__ import annotations

import trio

from ..errors import RuntimeClosedError
from ..registry import JsonValue, Outcome, PendingCall, freeze
from ._cancellation import cancelled_here, in_loop
from ._execution import Execution
from ._host import SubCalls
from ._views import View

__all__ = ["Run"]


class Run(View):
    """See ``registry.RunContext``. It is good for one invocation of the body, and refuses to act after it."""

    __slots__ = ("_ended", "_nursery", "_sub_calls")

    def __init__(self, execution: Execution, nursery: trio.Nursery) -> None:
        super().__init__(execution)
        self._nursery = nursery
        self._sub_calls: SubCalls | None = None
        self._ended = False

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled, by its caller, alone, or by a wrapper's deadline."""
        if self._execution.cancel_requested:
            return True
        if in_loop():
            return cancelled_here()
        try:
            trio.from_thread.check_cancelled()
        except trio.Cancelled:  # noqa: ASYNC103 - as said below
            # The thread only looks: whether it stops, and with what, is for the body to decide. The cancel itself stays
            # with the task that awaits the thread.
            return True  # noqa: ASYNC104 - as said above
        return False

    async def wait_cancelled(self) -> None:
        """See ``RunContext``."""
        execution = self._execution
        if execution.cancel_event is None:
            execution.cancel_event = trio.Event()
        if execution.cancel_requested:
            execution.cancel_event.set()
        # A wrapper's deadline cancels by trio's clock alone; in a shield this is how the body learns of it.
        with trio.CancelScope(deadline=execution.next_deadline()):
            await execution.cancel_event.wait()

    def defer_context(self, context: JsonValue) -> None:
        """See ``RunContext``."""
        self._check_open("defer_context")
        self._execution.contexts.append(freeze(context))

    def conclude_turn(self) -> None:
        """See ``RunContext``."""
        self._check_open("conclude_turn")
        self._execution.concludes = True

    def progress(self, progress: JsonValue) -> None:
        """See ``RunContext``."""
        self._check_open("progress")
        frozen = freeze(progress)
        if in_loop():
            self._execution.host.progressed(self._execution, frozen)
        else:
            trio.from_thread.run_sync(self._execution.host.progressed, self._execution, frozen)

    async def call(self, name: str, arguments: JsonValue = None, *, call_id: str | None = None) -> Outcome:
        """See ``RunContext``."""
        return await self._opened().call(name, arguments, call_id)

    def submit(self, name: str, arguments: JsonValue = None, *, call_id: str | None = None) -> PendingCall:
        """See ``RunContext``."""
        return self._opened().submit(name, arguments, call_id)

    def end(self, *, cancel: bool) -> None:
        """The body ended: no more calls; those handed in and not settled finish, or are cancelled."""
        self._ended = True
        if self._sub_calls is not None:
            self._sub_calls.close(cancel=cancel)

    @property
    def interrupt(self) -> BaseException | None:
        """A ``KeyboardInterrupt`` or the like that a sub-call raised."""
        return None if self._sub_calls is None else self._sub_calls.interrupt

    def _opened(self) -> SubCalls:
        self._check_open("call")
        if self._sub_calls is None:
            self._sub_calls = self._execution.host.open_sub_calls(self._execution, self._nursery)
        return self._sub_calls

    def _check_open(self, method: str) -> None:
        if self._ended:
            msg = f"run.{method}() was used after the body of {self!r} ended; it belongs to that body alone"
            raise RuntimeClosedError(msg)
