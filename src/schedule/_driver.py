"""The driver: executes a lane's decisions one at a time, and so keeps hooks and records in model order.

The lane decides, the driver acts: it runs the ordered stages itself, starts one actor task for each dispatched call,
and waits when the lane says so. It is what a call's ``Host`` is, for a batch, a stream and the sub-calls of a body.
"""

from __future__ import annotations

import contextvars
import logging
import sys
from collections.abc import Awaitable, Callable

import attrs
import trio

from ..actors import (
    CallerCancel,
    Execution,
    Identity,
    Pending,
    Pipeline,
    SubCalls,
    View,
    abort,
    first_interrupt,
    only_cancelled,
    pending_of,
    run_call,
)
from ..journal import Event, ToolCallStarted, request_of, result_event
from ..registry import EXCLUSIVE, Claims, JsonValue, Outcome, Registry, ToolCall, Wait
from ._lane import Do, Lane, Verdict
from ._progress import BatchEvent, Committed, EventStream, Progress, Settled, Started
from ._services import Services
from ._states import CallPhase

__all__ = ["Driver", "Place"]

logger = logging.getLogger("quiesce")


@attrs.frozen
class Place:
    """Where a lane stands: at the root, or inside the body of a call.

    Attributes:
        batch: The identity of the outermost batch.
        parent: The call whose body makes the calls of this lane, or ``None``.
        first: The index of the lane's first call: a body that a hook invokes again goes on counting its calls.
    """

    batch: str
    parent: Execution | None = None
    first: int = 0

    def key(self, index: int) -> str:
        """The journal's key of the call with this index."""
        return f"{self.batch if self.parent is None else self.parent.identity.key}:{index}"


@attrs.frozen
class Drained:
    """That a lane was drained, and why."""

    reason: str | None


class Driver:
    """See the module.

    Args:
        services: What the runtime gives.
        place: Where its lane stands.
        commit: Told each outcome, in model order, once it is recorded.
        open_sub_calls: Opens the lane of a body's further calls.
        cancellable: Whether single calls may be cancelled.
    """

    def __init__(
        self,
        services: Services,
        place: Place,
        commit: Callable[[int, Outcome], None],
        open_sub_calls: Callable[[Driver, Execution, trio.Nursery], SubCalls],
        *,
        cancellable: bool,
    ) -> None:
        self.services = services
        self.place = place
        self.caller_cancel = CallerCancel()
        self.lane = Lane(self._classify, max_parallel=services.max_parallel, limits=services.limits)
        self.interrupt: BaseException | None = None
        self.fault: BaseException | None = None
        self.drained: Drained | None = None
        self.executions: dict[int, Execution] = {}
        self.on_settled: Callable[[int], None] | None = None
        self._commit_to = commit
        self._open_sub_calls = open_sub_calls
        self._cancellable = cancellable
        self._calls: dict[int, tuple[ToolCall, float]] = {}
        self._cancelled_alone: dict[int, float] = {}
        self._classified: Claims = EXCLUSIVE
        self._subscribers: list[EventStream] = []
        self._context = contextvars.Context()
        self._nursery: trio.Nursery | None = None
        self._bell = trio.Event()
        self._shielded = False

    # What a call needs of its batch: the Host protocol of the actors.

    @property
    def registry(self) -> Registry:
        """See ``Host``."""
        return self.services.registry

    @property
    def limiter(self) -> trio.CapacityLimiter:
        """See ``Host``."""
        return self.services.limiter

    @property
    def cancellable(self) -> bool:
        """See ``Host``."""
        return self._cancellable

    def watch_caller(self, execution: Execution) -> None:
        """See ``Host``."""
        self.caller_cancel.watch(self.nursery)
        self.caller_cancel.listen(execution.cancel)

    def progressed(self, execution: Execution, progress: JsonValue) -> None:
        """See ``Host``."""
        if self._subscribers:
            call = execution.call
            self.publish(Progress(execution.index, call.call_id, call.name, trio.current_time(), progress))

    def open_sub_calls(self, execution: Execution, nursery: trio.Nursery) -> SubCalls:
        """See ``Host``."""
        return self._open_sub_calls(self, execution, nursery)

    def interrupted(self, error: BaseException) -> None:
        """See ``Host``. A further interrupt shows what is still running, and keeps settling."""
        if self.interrupt is None:
            self.interrupt = error
            self.cancel(f"interrupted by {type(error).__name__}")
            return
        for pending in self.pending():
            print(f"quiesce: still settling: {pending}", file=sys.stderr)

    # What the owner of the lane does with it.

    @property
    def nursery(self) -> trio.Nursery:
        """What owns the actors; there is none before ``drive``."""
        assert self._nursery is not None
        return self._nursery

    @property
    def driving(self) -> bool:
        """Whether ``drive`` has begun."""
        return self._nursery is not None

    def submit(self, call: ToolCall) -> int:
        """Hand in a call at the end of the lane; returns its index."""
        index = self.lane.submit(call.name)
        self._calls[index] = call, trio.current_time()
        self.ring()
        return index

    def close(self) -> None:
        """No further call will be handed in."""
        self.lane.close()
        self.ring()

    def cancel(self, reason: str | None) -> None:
        """Cancel everything: start nothing more and cancel what runs; ``drive`` then settles it."""
        self._noticed(reason)
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel(reason)

    def drain(self, reason: str | None) -> None:
        """Start nothing more and let what runs finish."""
        self.drained = self.drained or Drained(reason)
        self.lane.cancel()
        self.ring()

    def cancel_call(self, index: int, reason: str | None) -> bool:
        """Cancel one call and leave its siblings alone; ``False`` if it has settled."""
        open_still = self.lane.cancel_call(index)
        if open_still:
            self._cancelled_alone.setdefault(index, trio.current_time())
            if (execution := self.executions.get(index)) is not None:
                execution.cancel(reason)
        self.ring()
        return open_still

    def subscribe(self) -> EventStream:
        """A new stream of events from now on."""
        stream = EventStream()
        self._subscribers.append(stream)
        return stream

    def publish(self, event: BatchEvent) -> None:
        """Show an event to every subscriber."""
        for subscriber in self._subscribers:
            subscriber.publish(event)

    def end_events(self) -> None:
        """End every stream of events."""
        for subscriber in self._subscribers:
            subscriber.end()

    def record(self, event: Event) -> None:
        """Append an event to the journal. Everything that is recorded passes here."""
        self.services.journal.append(event)

    def ring(self) -> None:
        """Something happened that the lane may have to decide about."""
        self._bell.set()

    @trio.lowlevel.enable_ki_protection
    async def drive(self, nursery: trio.Nursery) -> None:
        """Execute the lane's decisions until it is done: closed and everything committed, or faulted and settled.

        Raises nothing: an interrupt or fault is left in ``interrupt`` and ``fault``, a cancel to the scope itself.
        """
        self._nursery = nursery
        # Actors start from the caller's context as it is now, whichever task turns the crank later.
        self._context = contextvars.copy_context()
        if self.caller_cancel.at is not None:
            nursery.cancel_scope.cancel(self.caller_cancel.reason)
        while True:
            await self._look_for_cancel()
            try:
                decision = self.lane.next()
                if decision.do is Do.DONE:
                    break
                if decision.do is not Do.WAIT:
                    await self._act(decision.do, decision.call)
                    continue
            except BaseException as error:  # noqa: ASYNC103, BLE001 - hooks and bodies raise nothing here, so this is a fault
                self.broke(error)
                continue  # noqa: ASYNC104 - as said
            # Not a fault to go on from: a wait that raises has no loop to wait in, and trying again would never end.
            await self._wait_for(self._bell)
            self._bell = trio.Event()
        self.caller_cancel.stop()

    async def flush(self) -> None:
        """Make the journal durable, where neither a cancel nor Ctrl-C can land: in a task of its own."""
        if not self.services.flushes:
            return
        done = trio.Event()
        errors: list[BaseException] = []

        async def flush() -> None:
            # Shields one flush of the journal, for as long as its owner takes: a record cut short would be a lie.
            # Pinned by test_a_cancel_does_not_cut_a_flush_short.
            with trio.CancelScope(shield=True):
                try:
                    await self.services.journal.flush()
                except BaseException as error:  # noqa: ASYNC103, BLE001 - handed to the driver, which makes it a fault
                    errors.append(error)
                finally:
                    done.set()

        self.nursery.start_soon(flush, name="quiesce: flush")
        await self._wait_for(done)
        if errors:
            raise errors[0]

    def pending(self) -> list[Pending]:
        """Every call that is not committed, in model order."""
        return [self._pending(index) for index in range(self.lane.cursor, len(self.lane))]

    def _pending(self, index: int) -> Pending:
        phase = self.lane.phase(index)
        waited = self._waited(index)
        calls = () if waited is None or phase is CallPhase.RUNNING else waited.calls
        if phase is CallPhase.SETTLED:
            calls = tuple(range(self.place.first + self.lane.cursor, self.place.first + index))
        execution = self.executions.get(index)
        if execution is not None:
            return pending_of(execution, phase.value, calls)
        call, queued_at = self._calls[index]
        parent = self.place.parent
        return Pending(
            index=self.place.first + index,
            call_id=call.call_id,
            name=call.name,
            phase=phase.value,
            age=trio.current_time() - queued_at,
            waits_for=calls,
            parent=None if parent is None else parent.identity.key,
        )

    async def _act(self, do: Do, index: int) -> None:
        match do:
            case Do.PREPARE:
                await self._prepare(index)
            case Do.START:
                self._start(self.executions[index])
            case Do.COMMIT:
                await self._commit(self.executions[index])
            case Do.ABANDON:
                self._abandon(index)
            case _:  # pragma: no cover - drive() handles the other two itself
                raise AssertionError(do)

    async def _prepare(self, index: int) -> None:
        execution = self._created(index)
        # The lane asked for them last, right before it decided that the call be prepared.
        execution.claims = self._classified
        try:
            self._record_call(execution)
            if self.services.durability == "dispatch":
                await self.flush()
            outcome = await self._staged(execution, self._pipeline.prepare)
        except BaseException as error:  # noqa: ASYNC103, BLE001 - a stage or the journal broke; the lane must know
            self.broke(error)
            outcome = None
        execution.prepared_at = trio.current_time()
        verdict = self.lane.prepared(index, dispatched=outcome is None)
        if verdict is Verdict.START:
            self._start(execution)
        elif verdict is Verdict.ABORT:
            self._has_outcome(execution, abort(execution))
        elif outcome is not None:
            self._has_outcome(execution, outcome)

    def _start(self, execution: Execution) -> None:
        execution.started_at = trio.current_time()
        if self._subscribers:
            call = execution.call
            self.publish(Started(execution.index, call.call_id, call.name, execution.started_at))
        self._context.run(self._spawn, execution)

    def _spawn(self, execution: Execution) -> None:
        name = execution.call.name
        self.nursery.start_soon(run_call, execution, self._pipeline, self._settled, self._broke_in, name=name)

    def _settled(self, execution: Execution, outcome: Outcome) -> None:
        self._has_outcome(execution, outcome)
        self.lane.settled(self._place_in_lane(execution))
        self.ring()

    def _broke_in(self, execution: Execution, error: BaseException) -> None:
        self.broke(error)
        self.lane.settled(self._place_in_lane(execution))
        self.ring()

    def _has_outcome(self, execution: Execution, outcome: Outcome) -> None:
        execution.outcome = outcome
        execution.settled_at = trio.current_time()
        self.caller_cancel.forget(execution.cancel)
        if self.on_settled is not None:
            self.on_settled(self._place_in_lane(execution))
        if self._subscribers:
            call = execution.call
            self.publish(Settled(execution.index, call.call_id, call.name, execution.settled_at, outcome.is_error))

    async def _commit(self, execution: Execution) -> None:
        if execution.outcome is None:
            # It was cancelled while it waited as ready; its post hooks still run.
            self._has_outcome(execution, abort(execution))
        settled = execution.outcome
        assert settled is not None
        if execution.post_allowed:
            outcome = await self._pipeline.finalize(execution, settled)
        else:
            outcome = self._pipeline.finish(execution, settled)
        self._tell_observers(execution, outcome)
        self._record_result(execution, outcome)

    def _abandon(self, index: int) -> None:
        execution = self._created(index)
        self._record_call(execution)
        execution.settled_at = trio.current_time()
        self._record_result(execution, abort(execution))

    def _tell_observers(self, execution: Execution, outcome: Outcome) -> None:
        for observer in self.registry.result_observers.seen_by(execution.agent):
            try:
                observer(View(execution), outcome)
            except Exception:
                logger.exception("result observer %r failed for call %r", observer, execution.call.call_id)
            except BaseException as error:  # noqa: ASYNC103, BLE001 - Ctrl-C or the like: raised again when all is settled
                self.interrupted(first_interrupt(error) or error)

    def _record_call(self, execution: Execution) -> None:
        self.record(
            ToolCallStarted(
                batch=self.place.batch,
                key=execution.identity.key,
                time=trio.current_time(),
                request=request_of(execution.index, execution.call),
                parent=None if execution.parent is None else execution.parent.key,
                root=execution.root_key,
            )
        )

    def _record_result(self, execution: Execution, outcome: Outcome) -> None:
        index, now = self._place_in_lane(execution), trio.current_time()
        self.record(
            result_event(
                outcome,
                batch=self.place.batch,
                key=execution.identity.key,
                parent=None if execution.parent is None else execution.parent.key,
                root=execution.root_key,
                timings=execution.timings(now),
                hooks=tuple(execution.spans),
                waited=self._waited(index),
                claims=execution.claims,
                cancelled_at=self._cancelled_alone.pop(index, None),
            )
        )
        del self.executions[index]
        del self._calls[index]
        self._commit_to(index, outcome)
        self.lane.committed(index)
        if self._subscribers:
            self.publish(Committed(index, outcome.call_id, outcome.name, now, outcome))

    async def _staged(
        self, execution: Execution, stage: Callable[[Execution], Awaitable[Outcome | None]]
    ) -> Outcome | None:
        """Run a stage; one that a test replaced may let a cancel out, which is data like any other.

        Where single calls may be cancelled it has a scope, so that a hook or approver that waits for ever can be ended.
        """
        try:
            if not self._cancellable:
                return await stage(execution)
            with trio.CancelScope() as scope:
                execution.scopes.append(scope)
                try:
                    return await stage(execution)
                finally:
                    execution.scopes.remove(scope)
            return abort(execution)
        except BaseException as error:
            if only_cancelled(error):
                return abort(execution)  # noqa: ASYNC104 - as said above
            raise

    @property
    def _pipeline(self) -> Pipeline:
        return self.services.pipeline

    def _classify(self, index: int) -> Claims:
        try:
            self._classified = self.registry.execution_mode(self._calls[index][0])
        except BaseException as error:  # noqa: ASYNC103, BLE001 - classify() contains Exceptions, so this is Ctrl-C or the like
            self.interrupted(error)
            self._classified = EXCLUSIVE
        return self._classified  # noqa: ASYNC104 - a classifier is synchronous

    def _created(self, index: int) -> Execution:
        call, queued_at = self._calls[index]
        parent = self.place.parent
        number = self.place.first + index
        identity = Identity(self.place.key(number))
        execution = Execution(
            call=call,
            index=number,
            identity=identity,
            host=self,
            root_call_id=call.call_id if parent is None else parent.root_call_id,
            root_key=identity.key if parent is None else parent.root_key,
            queued_at=queued_at,
            parent=None if parent is None else parent.identity,
        )
        self.executions[index] = execution
        return execution

    def _waited(self, index: int) -> Wait | None:
        """Why a call could not start at its turn, with the calls it conflicted with by their index."""
        waited, first = self.lane.waited_for(index), self.place.first
        if waited is None or not first:
            return waited
        return Wait(waited.kind, tuple(first + other for other in waited.calls))

    def _place_in_lane(self, execution: Execution) -> int:
        return execution.index - self.place.first

    def _noticed(self, reason: str | None) -> None:
        self.caller_cancel.notice(reason)
        self.lane.cancel()
        self.ring()

    def broke(self, error: BaseException) -> None:
        """Something inside quiesce or its journal broke: start nothing more, and wait for what runs."""
        if self.fault is None:
            self.fault = error
        self.lane.fault()
        self.ring()

    async def _look_for_cancel(self) -> None:
        """See a cancel of the scopes around, or a Ctrl-C, before the lane decides. No checkpoint if there is none."""
        if self._shielded:
            return
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
        except trio.Cancelled as cancelled:  # noqa: ASYNC103 - run() ends with the checkpoint that raises it again
            self._cancelled(cancelled)
        except KeyboardInterrupt as interrupt:
            self.interrupted(interrupt)

    async def _wait_for(self, event: trio.Event) -> None:
        """Wait, whatever comes: a cancel or Ctrl-C is noted, and what runs is still awaited."""
        while not event.is_set():
            # Shields the batch's own wait for what runs, once the cancel is noted and until it settles: each body has
            # been cancelled by the same scope, and run() ends with the checkpoint that raises the cancel again.
            # Pinned by test_run_settles_everything_before_cancelled_propagates.
            try:
                with trio.CancelScope(shield=self._shielded):
                    await event.wait()
            except trio.Cancelled as cancelled:  # noqa: ASYNC103 - run() ends with the checkpoint that raises it again
                self._cancelled(cancelled)
            except KeyboardInterrupt as interrupt:
                self.interrupted(interrupt)

    def _cancelled(self, cancelled: trio.Cancelled) -> None:
        self._shielded = True
        self._noticed(cancelled.reason)
