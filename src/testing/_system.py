"""What the operating system knows of this process: its descriptors, its children, its locks on files."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

__all__ = ["child_processes", "descriptors", "file_locks", "inode_of"]

_PROC = Path("/proc/self")
_DESCRIPTORS = next((folder for folder in ("/proc/self/fd", "/dev/fd") if Path(folder).is_dir()), None)


def descriptors() -> dict[int, str]:
    """Open descriptors, and what each is: a path, or what Linux calls a thing without one."""
    if _DESCRIPTORS is None:
        return {}
    found: dict[int, str] = {}
    for name in os.listdir(_DESCRIPTORS):  # noqa: PTH208 - called for every run, and names are all that is needed
        try:
            found[int(name)] = _target(int(name))
        except OSError:  # that of the listing itself
            continue
    return found


def _target(number: int) -> str:
    if _DESCRIPTORS == "/proc/self/fd":
        return os.readlink(f"{_DESCRIPTORS}/{number}")  # noqa: PTH115 - as above
    status = os.fstat(number)
    return f"{stat.filemode(status.st_mode)[0]} device {status.st_dev} inode {status.st_ino}"


def child_processes() -> list[tuple[int, str]]:
    """Children, ended ones that were not waited for included: number and description. Linux only; else empty."""
    if not _PROC.is_dir():
        return []
    found = [(pid, what) for pid in _child_numbers() if (what := _description(pid)) is not None]
    return sorted(found)


def _child_numbers() -> list[int]:
    numbers: list[int] = []
    for thread in os.listdir(_PROC / "task"):  # noqa: PTH208 - as above
        try:
            numbers += map(int, (_PROC / "task" / thread / "children").read_text().split())
        except FileNotFoundError:  # the thread has ended, or this kernel was built without these files
            continue
    return numbers


def _description(pid: int) -> str | None:
    """The command of a process and when it began, which together with its number is unique."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # waited for meanwhile
        return None
    name = status[status.index("(") + 1 : status.rindex(")")]
    fields = status[status.rindex(")") + 2 :].split()
    if fields[0] == "Z":
        return f"{pid} {name} (ended, not waited for; began at {fields[19]})"
    words = command.replace(b"\0", b" ").decode(errors="replace").strip()
    return f"{pid} {words[:80] or name} (began at {fields[19]})"


def inode_of(number: int) -> str:
    """The file of a descriptor as ``/proc/locks`` names it."""
    status = os.fstat(number)
    return f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"


def file_locks() -> dict[str, str]:
    """Locks that this process holds on files: by device and inode, in words. Linux only; else empty.

    Slow: while the kernel lists them, nobody can lock anything.
    """
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return {}
    own = [fields for line in lines if (fields := line.split())[4:5] == [str(os.getpid())]]
    paths = _paths_by_inode() if own else {}
    return {fields[5]: f"{fields[1]} {fields[3]} lock on {paths.get(fields[5], fields[5])}" for fields in own}


def _paths_by_inode() -> dict[str, str]:
    found: dict[str, str] = {}
    for number, target in descriptors().items():
        with contextlib.suppress(OSError):
            found[inode_of(number)] = target
    return found
