"""What a call needs of the batch that runs it, and of the layer above for its sub-calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import trio

from ..registry import JsonValue, Outcome, PendingCall, Registry

if TYPE_CHECKING:
    from ._cancellation import CallerCancel
    from ._execution import Execution

__all__ = ["Host", "SubCalls"]


class SubCalls(Protocol):
    """The further calls of one body: a lane of their own, settled before the body's call is."""

    async def call(self, name: str, arguments: JsonValue, call_id: str | None) -> Outcome:
        """Run one and return its outcome once it is committed; cancelling this cancels and settles it."""
        ...

    def submit(self, name: str, arguments: JsonValue, call_id: str | None) -> PendingCall:
        """Hand one in without waiting."""
        ...

    def close(self, *, cancel: bool) -> None:
        """Take no more; cancel those that have not settled, or let them finish."""
        ...

    @property
    def interrupt(self) -> BaseException | None:
        """A ``KeyboardInterrupt`` or the like that one of them raised."""
        ...


class Host(Protocol):
    """The batch, as its calls see it."""

    @property
    def registry(self) -> Registry:
        """Tools and hooks, live."""
        ...

    @property
    def caller_cancel(self) -> CallerCancel:
        """When and why the caller cancelled."""
        ...

    @property
    def limiter(self) -> trio.CapacityLimiter:
        """For worker threads that run synchronous bodies."""
        ...

    @property
    def cancellable(self) -> bool:
        """Whether single calls may be cancelled."""
        ...

    def watch_caller(self, execution: Execution) -> None:
        """From now on pass the caller's cancel to ``execution`` at once, through any shield."""
        ...

    def interrupted(self, error: BaseException) -> None:
        """A body or hook raised something that is no ``Exception``: cancel the rest, raise it in the end."""
        ...

    def progressed(self, execution: Execution, progress: JsonValue) -> None:
        """A body reports progress."""
        ...

    def open_sub_calls(self, execution: Execution, nursery: trio.Nursery) -> SubCalls:
        """Open the lane for the further calls of a body; ``nursery`` owns what runs for them."""
        ...
