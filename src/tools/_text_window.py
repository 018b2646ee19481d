"""Read a window of lines from a text file of any size in bounded memory."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs

from ..errors import ToolError

__all__ = ["MAX_LINES", "Line", "Window", "read_window"]

MAX_LINES: Final = 2_000
_MAX_LINE_CHARS: Final = 2_000
_MAX_WINDOW_BYTES: Final = 50 * 1024
_BINARY_PROBE_BYTES: Final = 8_192
_CHUNK_BYTES: Final = 1 << 18
_LINE_CUT: Final = f"... (line truncated to {_MAX_LINE_CHARS} chars)"


@attrs.frozen
class Line:
    """One line of a file.

    Attributes:
        number: Its number in the file, from 1.
        text: The line without its line break (LF or CR LF), cut after 2,000 characters with a note that says so.
    """

    number: int
    text: str


@attrs.frozen
class Window:
    """Some consecutive lines of a file.

    Attributes:
        lines: The lines, in order.
        total: How many lines the whole file has.
    """

    lines: tuple[Line, ...]
    total: int


def read_window(path: Path, offset: int, limit: int, checkpoint: Callable[[], None]) -> Window:
    """Read up to ``limit`` lines from line ``offset`` on.

    The whole file is read, because the total is exact and all of it must be UTF-8, but no more than one chunk and the
    window are in memory at a time; the size that the system states is not relied on.

    Args:
        path: The file; links are followed.
        offset: Number of the first line, from 1. An empty file may be read from line 1.
        limit: Most lines to return. Fewer are returned when they exceed 50 KiB.
        checkpoint: Called between chunks; what it raises ends the reading.

    Raises:
        ToolError: With an ``FS_*`` code.

    Source: ``spec/catalogue.md`` 5.9, 6.3.
    """
    try:
        descriptor = _open_regular(path)
        try:
            window = _read(descriptor, path, offset, limit, checkpoint)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _fs_error(path, error) from error
    if offset > max(window.total, 1):
        msg = f"offset {offset} is past the end of {path}, which has {window.total} lines"
        raise ToolError(msg, "FS_NOT_FOUND")
    return window


def _open_regular(path: Path) -> int:
    try:
        found = path.stat()
    except ValueError as error:  # a NUL, or a surrogate that the file system's encoding has not: no name has these
        msg = f"no such file: {str(path)!r}"
        raise ToolError(msg, "FS_NOT_FOUND") from error
    # Looked at before it is opened, since opening can act on a device, and after, since it may have been replaced in
    # between. Without O_NONBLOCK, opening a FIFO would wait for a writer.
    _require_regular(path, found)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        _require_regular(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
        msg = f"{path} is {kind}"
        raise ToolError(msg, "FS_NOT_REGULAR_FILE")


def _read(descriptor: int, path: Path, offset: int, limit: int, checkpoint: Callable[[], None]) -> Window:
    collector = _Collector(offset, limit)
    decoder = codecs.getincrementaldecoder("utf-8")()
    start = b""
    try:
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            if len(start) < _BINARY_PROBE_BYTES:
                start += chunk[: _BINARY_PROBE_BYTES - len(start)]
                if b"\0" in start:
                    msg = f"{path} is not a text file: it has NUL bytes"
                    raise ToolError(msg, "FS_NOT_TEXT")
            collector.feed(decoder.decode(chunk))
            checkpoint()
        collector.feed(decoder.decode(b"", final=True))
    except UnicodeDecodeError as error:
        msg = f"{path} is not a UTF-8 text file"
        raise ToolError(msg, "FS_NOT_TEXT") from error
    return collector.finish()


class _Collector:
    """Counts the lines of a text that comes in pieces, and keeps those of the window."""

    __slots__ = ("_bytes_left", "_complete", "_current", "_first", "_last", "_lines", "_open")

    def __init__(self, offset: int, limit: int) -> None:
        self._first = offset
        self._last = offset + limit - 1
        self._lines: list[Line] = []
        self._bytes_left = _MAX_WINDOW_BYTES
        self._complete = 0
        self._open = False
        self._current = ""

    def feed(self, text: str) -> None:
        if not text:
            return
        breaks = text.count("\n")
        if self._complete + breaks + 1 < self._first or self._complete >= self._last:
            self._complete += breaks
        else:
            for index, piece in enumerate(text.split("\n")):
                if index:
                    self._end_line()
                self._extend(piece)
        self._open = not text.endswith("\n")

    def finish(self) -> Window:
        if self._open:
            self._end_line()
        return Window(tuple(self._lines), self._complete)

    def _extend(self, piece: str) -> None:
        # Two characters more than are shown: one tells that the line is too long, one may be the CR of its line break.
        self._current += piece[: _MAX_LINE_CHARS + 2 - len(self._current)]

    def _end_line(self) -> None:
        self._complete += 1
        text, self._current = self._current.removesuffix("\r"), ""
        if not self._first <= self._complete <= self._last:
            return
        if len(text) > _MAX_LINE_CHARS:
            text = text[:_MAX_LINE_CHARS] + _LINE_CUT
        self._bytes_left -= len(text.encode()) + 1
        if self._bytes_left < 0:
            self._last = self._complete - 1
        else:
            self._lines.append(Line(self._complete, text))


def _fs_error(path: Path, error: OSError) -> ToolError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return ToolError(f"no such file: {path}", "FS_NOT_FOUND")
    if isinstance(error, PermissionError):
        return ToolError(f"not permitted to read {path}", "FS_PERMISSION_DENIED")
    return ToolError(f"cannot read {path}: {error.strerror or error}", "FS_IO_ERROR")
