"""Files by path: which file a path means, opening regular files, their versions, and errors as ``FS_*`` codes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import attrs

from ..errors import ToolError
from ..registry import EXCLUSIVE, Claims
from ._workspace import Workspace

__all__ = [
    "BINARY_PROBE_BYTES",
    "CHUNK_BYTES",
    "MAX_TEXT_BYTES",
    "Checkpoint",
    "Contents",
    "Version",
    "fs_error",
    "fs_errors",
    "open_regular",
    "read_contents",
    "real_path",
    "require_regular",
    "write_claims",
]

BINARY_PROBE_BYTES: Final = 8_192
CHUNK_BYTES: Final = 1 << 18
MAX_TEXT_BYTES: Final = 10 * 1024 * 1024
"""From this size on a file is not taken into memory as a whole."""

Checkpoint = Callable[[], None]
"""Called in a worker thread between two steps; raises if the call was cancelled."""


@attrs.frozen
class Version:
    """What tells whether a file is still the one that was looked at.

    Attributes:
        device: Of the file system.
        inode: Number of the file in it.
        size: In bytes.
        mtime_ns: Last change of the contents.
        ctime_ns: Last change of the contents or of anything about the file.

    Source: ``spec/catalogue.md`` 6.3.
    """

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Self:
        """The version of the file that was looked at."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@attrs.frozen
class Contents:
    """All of a file at one moment.

    Attributes:
        data: Its bytes.
        version: The version that had them.
    """

    data: bytes
    version: Version


def write_claims(workspace: Workspace, path: str) -> Claims:
    """The claims of a call that changes one file.

    Returns:
        A key for the file that the path leads to, or ``EXCLUSIVE`` where that cannot be told (a loop of links, a name
        that no file can have): which calls it has to keep away from is not known then.
    """
    try:
        return Claims.path(write=workspace.resolve(path))
    except (OSError, ValueError, RuntimeError):  # RuntimeError: how pathlib reports a loop of links
        return EXCLUSIVE


def real_path(path: Path) -> Path:
    """The file that a path means, behind all links; it need not exist, and a loop of links stays in it.

    Raises:
        ToolError: ``FS_NOT_FOUND``: no file can have this name.

    Source: ``spec/catalogue.md`` 6.3.
    """
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:  # a surrogate that the file system's encoding has not
        possible = False
    if not possible:
        msg = f"no such file: {str(path)!r}"
        raise ToolError(msg, "FS_NOT_FOUND")
    return Path(os.path.realpath(path))


def open_regular(path: Path) -> int:
    """Open a regular file for reading, without acting on what is none.

    Returns:
        A descriptor; the caller closes it.

    Raises:
        ToolError: ``FS_NOT_REGULAR_FILE``, or ``FS_NOT_FOUND`` for a name that no file can have.
        OSError: The system refuses.
    """
    try:
        found = path.stat()
    except ValueError as error:  # a NUL, or a surrogate that the file system's encoding has not: no name has these
        msg = f"no such file: {str(path)!r}"
        raise ToolError(msg, "FS_NOT_FOUND") from error
    # Looked at before it is opened, since opening can act on a device, and after, since it may have been replaced in
    # between. Without O_NONBLOCK, opening a FIFO would wait for a writer.
    require_regular(path, found)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        require_regular(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def require_regular(path: Path, found: os.stat_result) -> None:
    """Refuse folders and special files.

    Raises:
        ToolError: ``FS_NOT_REGULAR_FILE``.
    """
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
        msg = f"{path} is {kind}"
        raise ToolError(msg, "FS_NOT_REGULAR_FILE")


def read_contents(path: Path, checkpoint: Checkpoint) -> Contents:
    """Read a whole file that is smaller than 10 MiB.

    Raises:
        ToolError: ``FS_TOO_LARGE``; ``FS_STALE_VERSION`` if it changed meanwhile; as ``open_regular``.
        OSError: The system refuses.
    """
    descriptor = open_regular(path)
    try:
        version = Version.of(os.fstat(descriptor))
        data = bytearray()
        # The stated size is not relied on: files under /proc are said to be empty.
        while chunk := os.read(descriptor, CHUNK_BYTES):
            data += chunk
            if len(data) >= MAX_TEXT_BYTES:
                msg = f"{path} is too large: only files below 10 MiB are taken as a whole"
                raise ToolError(msg, "FS_TOO_LARGE")
            checkpoint()
        if Version.of(os.fstat(descriptor)) != version:
            msg = f"{path} changed while it was read; read it again, then retry"
            raise ToolError(msg, "FS_STALE_VERSION")
    finally:
        os.close(descriptor)
    return Contents(bytes(data), version)


@contextmanager
def fs_errors(path: Path, doing: str) -> Generator[None]:
    """Turn errors of the system into failures of the tool; ``doing`` is the verb: ``read`` or ``write``.

    Raises:
        ToolError: See ``fs_error``.
    """
    try:
        yield
    except OSError as error:
        raise fs_error(path, error, doing) from error


def fs_error(path: Path, error: OSError, doing: str = "read") -> ToolError:
    """What an error of the system means to the model.

    Source: ``spec/catalogue.md`` 6.3.
    """
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return ToolError(f"no such file: {path}", "FS_NOT_FOUND")
    if isinstance(error, PermissionError):
        return ToolError(f"not permitted to {doing} {path}", "FS_PERMISSION_DENIED")
    return ToolError(f"cannot {doing} {path}: {error.strerror or error}", "FS_IO_ERROR")
