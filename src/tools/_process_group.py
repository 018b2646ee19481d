"""A process group: whether any process of it is alive, and how it is ended."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Final

import trio

__all__ = ["ProcessGroup"]

_POLL_SECONDS: Final = 0.015
_PROC: Final = Path("/proc")
_HAS_PROC: Final = Path("/proc/self/stat").exists()


class ProcessGroup:
    """The group that a process leads, made with ``start_new_session=True``.

    It owns the reaping of its leader from the moment ``gone`` or ``end`` is first called: nobody else may wait for
    that process afterwards. Once the group was seen to be gone it is never signalled again, because the system may
    give its number to somebody else.

    Args:
        leader: The process; its id is the group's.

    Source: ``spec/catalogue.md`` 6.1.
    """

    __slots__ = ("_gone", "_leader", "_witness")

    def __init__(self, leader: trio.Process) -> None:
        self._leader = leader
        self._gone = False
        self._witness: int | None = None

    def gone(self) -> bool:
        """Whether the leader is reaped and no other process of the group is alive; zombies are not alive."""
        # The leader first: unreaped, it would itself keep the group's number in use. `returncode` reaps it.
        if not self._gone and self._leader.returncode is not None:
            self._gone = not self._has_live_member()
        return self._gone

    async def wait_gone(self) -> None:
        """Return once the group is gone. Cancelling this wait changes nothing."""
        while not self.gone():  # noqa: ASYNC110 - the system offers nothing to wait on for a group
            await trio.sleep(_POLL_SECONDS)

    async def end(self, grace: float) -> None:
        """End what is left of the group and return once nothing of it is alive.

        SIGTERM, then SIGKILL for what is still there after ``grace``. The leader having exited changes nothing for
        the others.

        Args:
            grace: Seconds between the two signals.
        """
        for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, float("inf"))):
            if self.gone():
                return
            # A process that this user may not signal (a setuid program) is waited for like any other.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader.pid, number)
            with trio.move_on_after(patience):
                await self.wait_gone()

    def _has_live_member(self) -> bool:
        try:
            os.killpg(self._leader.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            # Something is there that may not be signalled. BSD says so of a group of zombies as well.
            if not _HAS_PROC:
                return False
        if not _HAS_PROC:
            return True
        # A zombie that its parent never reaps would keep the group "alive" for ever. Two scans, because a process
        # that forks and exits during one scan can be missed by it.
        return self._finds_live_member() or self._finds_live_member()

    def _finds_live_member(self) -> bool:
        group = self._leader.pid
        if self._witness is not None and _is_live_member(self._witness, group):
            return True
        pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())
        self._witness = next((pid for pid in pids if _is_live_member(pid, group)), None)
        return self._witness is not None


def _is_live_member(pid: int, group: int) -> bool:
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return False
    # The command's name, in parentheses, may itself hold spaces and parentheses.
    state, _parent, its_group = stat[stat.rindex(b")") + 1 :].split(maxsplit=3)[:3]
    return int(its_group) == group and state not in {b"Z", b"X"}
