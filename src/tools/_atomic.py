"""Publish new contents of a file in one step: whoever looks sees all of the old or all of the new.

A temporary file in the same folder gets the new contents, is forced to the disk, and is renamed over the target (or
linked to a name that is free). Nothing before that step is visible under the target's name, nothing comes after it, and
the last look for a cancel is right before it: a call that was cut short changed nothing.
"""

from __future__ import annotations

import enum
import errno
import os
import secrets
import threading
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias

from ..errors import ToolError
from ._files import Checkpoint, Version, require_regular

__all__ = ["ANYTHING", "NOTHING", "Expected", "publish", "turn_on"]


class _Expected(enum.Enum):
    ANYTHING = "anything"
    NOTHING = "nothing"


ANYTHING: Final = _Expected.ANYTHING
"""Whatever the target is, or is not."""
NOTHING: Final = _Expected.NOTHING
"""There is no target yet."""
Expected: TypeAlias = Version | Literal[_Expected.ANYTHING, _Expected.NOTHING]

_NEW_MODE: Final = 0o600
_CHUNK_BYTES: Final = 1 << 20
_LOOK_EVERY: Final = 0.02
"""Seconds between two looks for a cancel while another thread changes the same file."""
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK})


class _Turn:
    """The lock of one target; exists while somebody uses it."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()


_turns: Final[weakref.WeakValueDictionary[str, _Turn]] = weakref.WeakValueDictionary()
_turns_lock: Final = threading.Lock()


@contextmanager
def turn_on(target: Path, checkpoint: Checkpoint) -> Generator[None]:
    """Change ``target`` while no other call in this process does.

    Claims keep calls of one lane apart; this is for two batches, runtimes or threads. Holders never wait for anything
    else, so it cannot deadlock.

    Args:
        target: A real path.
        checkpoint: Called while waiting; what it raises ends the wait.

    Source: ``spec/catalogue.md`` 6.3.
    """
    with _turns_lock:
        turn = _turns.setdefault(str(target), _Turn())
    while not turn.lock.acquire(timeout=_LOOK_EVERY):
        checkpoint()
    try:
        yield
    finally:
        turn.lock.release()


def publish(target: Path, data: bytes, expected: Expected, checkpoint: Checkpoint) -> None:
    """Make ``data`` the contents of ``target``; hold its ``turn_on`` meanwhile.

    Whatever is raised, ``target`` is as it was and the temporary file is gone. An existing file keeps its permissions
    and, as far as this process may give it away, its owner and group; a new one has mode 0600. Other names of the same
    file (hard links) keep the old contents. Extended attributes are not kept.

    Args:
        target: A real path, with no link at its end.
        data: The contents.
        expected: What the target has to be at the moment of publishing.
        checkpoint: Called between steps, last right before the one that publishes; what it raises ends the call.

    Raises:
        ToolError: ``FS_STALE_VERSION``: the target is not what was expected (for ``NOTHING`` it exists);
            ``FS_NOT_REGULAR_FILE``; ``FS_NOT_FOUND`` or ``FS_NOT_DIRECTORY``: there is no such folder.
        OSError: The system refuses.

    Source: ``spec/catalogue.md`` 6.3.
    """
    found = _look(target)
    _require(target, found, expected)
    if found is not None:
        _require_writable(target, found)
    temporary = _stage(target, data, found, checkpoint)
    try:
        checkpoint()
        found = _look(target)
        _require(target, found, expected)
        if expected is NOTHING:
            _link(temporary, target)
        else:
            temporary.replace(target)
    finally:
        _remove(temporary)


def _look(target: Path) -> os.stat_result | None:
    try:
        return target.stat()
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        msg = f"{target.parent} is not a folder"
        raise ToolError(msg, "FS_NOT_DIRECTORY") from error


def _require(target: Path, found: os.stat_result | None, expected: Expected) -> None:
    if expected is NOTHING:
        if found is not None:
            raise _exists(target)
    elif expected is not ANYTHING and (found is None or Version.of(found) != expected):
        msg = f"{target} changed since it was read; read it again, then retry"
        raise ToolError(msg, "FS_STALE_VERSION")


def _exists(target: Path) -> ToolError:
    return ToolError(f"{target} already exists; read it, then edit it", "FS_STALE_VERSION")


def _require_writable(target: Path, found: os.stat_result) -> None:
    require_regular(target, found)
    # Renaming over a file needs no right to write it, only one to write its folder: this keeps read-only files safe.
    if not os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))


def _stage(target: Path, data: bytes, found: os.stat_result | None, checkpoint: Checkpoint) -> Path:
    """Write ``data`` to a new file beside ``target``, forced to the disk; on any error it is removed again."""
    # Drawn from 2**128 and created exclusively: it is never a file of somebody else, nor another call's.
    temporary = target.parent / f".quiesce-{secrets.token_hex(16)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(temporary, flags, _NEW_MODE)
    except FileNotFoundError as error:
        msg = f"no such folder: {target.parent}"
        raise ToolError(msg, "FS_NOT_FOUND") from error
    try:
        try:
            _fill(descriptor, data, checkpoint)
            if found is not None:
                _keep_rights(descriptor, found)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        _remove(temporary)
        raise
    return temporary


def _fill(descriptor: int, data: bytes, checkpoint: Checkpoint) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left[:_CHUNK_BYTES]) :]
        checkpoint()


def _keep_rights(descriptor: int, found: os.stat_result) -> None:
    mode = found.st_mode & 0o7777
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (found.st_uid, found.st_gid):
        try:
            os.fchown(descriptor, found.st_uid, found.st_gid)
        except PermissionError:
            # It cannot be given away. With these bits it would now lend the rights of somebody else.
            mode &= 0o1777
    os.fchmod(descriptor, mode)


def _link(temporary: Path, target: Path) -> None:
    """Give the file a name that must be free, unlike a rename."""
    try:
        target.hardlink_to(temporary)
    except FileExistsError as error:
        raise _exists(target) from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without hard links: the name was free a moment ago, and no better is to be had.
        temporary.replace(target)


def _remove(temporary: Path) -> None:
    """Remove the temporary file, if it has not become the target.

    An error here must not hide what is being raised, nor fail a call that has already published.
    """
    with suppress(OSError):
        temporary.unlink()
