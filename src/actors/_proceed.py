"""``proceed``: how a hook runs what is inside it, and how it is kept from leaving it behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

from ..errors import HookError

__all__ = ["Proceed"]

T = TypeVar("T")


class Proceed(Generic[T]):
    """What a hook calls to run the hooks inside it: one at a time, and only while the hook itself runs.

    Args:
        inside: Runs what is inside once.
        hook: The hook, for messages.
        stray: Called if the hook ended while its ``proceed`` still runs in a task elsewhere, to cut it short.
    """

    def __init__(
        self, inside: Callable[[], Awaitable[T]], hook: object, stray: Callable[[], None] | None = None
    ) -> None:
        self._inside = inside
        self._hook = hook
        self._stray = stray
        self._count = 0
        self._ended = False
        self._idle: trio.Event | None = None

    async def __call__(self) -> T:
        """Run what is inside.

        Raises:
            HookError: An earlier call still runs, or the hook has ended.
        """
        if self._ended or self._idle is not None:
            when = "after its hook ended" if self._ended else "while an earlier proceed() runs"
            msg = f"proceed() of {self._hook!r} was called {when}; await each one inside the hook"
            raise HookError(msg)
        self._count += 1
        if self._count > 1:
            # A hook that tries again for ever must not freeze the loop, and must end when it is cancelled.
            await trio.lowlevel.checkpoint()
        idle = self._idle = trio.Event()
        try:
            return await self._inside()
        finally:
            self._idle = None
            idle.set()

    async def end(self) -> None:
        """The hook ended: wait for a ``proceed`` that it left behind; no checkpoint if there is none."""
        self._ended = True
        idle = self._idle
        if idle is None:
            return
        if self._stray is not None:
            self._stray()
        # Shields the wait for what a misbehaving hook left behind in another task, until it ends, since nothing may
        # outlive the call. Pinned by test_a_hook_that_leaves_its_body_behind_waits_for_it.
        with trio.CancelScope(shield=True):
            await idle.wait()
