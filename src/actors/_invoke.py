"""Calling what others wrote: where Ctrl-C may land, and where a plain function runs in a thread."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ParamSpec, TypeVar, cast

import trio

from ._execution import Execution

__all__ = ["call_async_body", "call_sync_body", "call_unprotected"]

P = ParamSpec("P")
T = TypeVar("T")


# The library's own tasks are protected from Ctrl-C, so that it cannot land between two of the lane's steps. Hooks and
# bodies are ordinary code, which it must be able to interrupt.
@trio.lowlevel.disable_ki_protection
async def call_unprotected(function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call and await a hook; no checkpoint before the call."""
    return await function(*args, **kwargs)


@trio.lowlevel.disable_ki_protection
async def call_async_body(body: Callable[[], object]) -> object:
    """Call and await an asynchronous body; no checkpoint before the call."""
    result = body()
    return await cast("Awaitable[object]", result) if inspect.isawaitable(result) else result


async def call_sync_body(execution: Execution, body: Callable[[], T]) -> T:
    """Run a synchronous body in a worker thread and await it, cancelled or not.

    The body counts as invoked by the thread's first act: a cancel while it waits for a thread finds it not invoked.
    """
    clock = trio.lowlevel.current_clock()
    # abandon_on_cancel stays False: nothing is ever abandoned.
    return await trio.to_thread.run_sync(partial(_in_thread, execution, body, clock), limiter=execution.host.limiter)


def _in_thread(execution: Execution, body: Callable[[], T], clock: trio.abc.Clock) -> T:
    execution.note_invoked(clock.current_time())
    execution.thread = threading.get_ident()
    try:
        return body()
    finally:
        execution.thread = None
