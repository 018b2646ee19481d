"""What the operating system knows of this process: its descriptors, its children, its locks on files."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

__all__ = ["child_processes", "descriptors", "file_locks", "files_of_descriptors", "inode_of"]

_PROC = Path("/proc/self")
_DESCRIPTORS = next((folder for folder in ("/proc/self/fd", "/dev/fd") if Path(folder).is_dir()), None)


def files_of_descriptors() -> dict[int, tuple[int, int]]:
    """The device and inode of each open descriptor: what stays when the file gets another name."""
    found: dict[int, tuple[int, int]] = {}
    for number in descriptors():
        with contextlib.suppress(OSError):
            status = os.fstat(number)
            found[number] = status.st_dev, status.st_ino
    return found


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


def child_processes() -> dict[tuple[int, str], str]:
    """Children, ended ones that were not waited for included: by number and start, in words. Linux only; else empty."""
    if not _PROC.is_dir():
        return {}
    found = {pid: _description(pid) for pid in sorted(_child_numbers())}
    return {(pid, seen[0]): seen[1] for pid, seen in found.items() if seen is not None}


def _child_numbers() -> list[int]:
    numbers: list[int] = []
    for thread in os.listdir(_PROC / "task"):  # noqa: PTH208 - as above
        try:
            numbers += map(int, (_PROC / "task" / thread / "children").read_text().split())
        except FileNotFoundError:  # the thread has ended, or this kernel was built without these files
            continue
    return numbers


def _description(pid: int) -> tuple[str, str] | None:
    """When a process began, which together with its number is unique, and what it is."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # waited for meanwhile
        return None
    name = status[status.index("(") + 1 : status.rindex(")")]
    fields = status[status.rindex(")") + 2 :].split()
    if fields[0] == "Z":
        return fields[19], f"{pid} {name} (ended, not waited for)"
    words = command.replace(b"\0", b" ").decode(errors="replace").strip()
    return fields[19], f"{pid} {words[:80] or name}"


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
