"""Read a window of lines from a text file of any size in bounded memory."""

from __future__ import annotations

import codecs
import os
from pathlib import Path
from typing import Final

import attrs

from ..errors import ToolError
from ._files import BINARY_PROBE_BYTES, Checkpoint, fs_errors, open_regular

__all__ = ["MAX_LINES", "Limits", "Line", "Window", "read_window", "scan_window"]

MAX_LINES: Final = 2_000
_CHUNK_BYTES: Final = 1 << 18


@attrs.frozen
class Limits:
    """How much of a file is kept.

    Attributes:
        line_chars: Characters of one line; what is longer is cut, with a note.
        window_bytes: Bytes of all lines together; the window ends before the line that exceeds them.
    """

    line_chars: int = 2_000
    window_bytes: int = 50 * 1024


_READ: Final = Limits()


@attrs.frozen
class Line:
    """One line of a file.

    Attributes:
        number: Its number in the file, from 1.
        text: The line without its line break (LF or CR LF), cut at the limit with a note that says so.
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


def read_window(path: Path, offset: int, limit: int, checkpoint: Checkpoint) -> Window:
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
    window = scan_window(path, offset, limit, checkpoint, _READ)
    if offset > max(window.total, 1):
        msg = f"offset {offset} is past the end of {path}, which has {window.total} lines"
        raise ToolError(msg, "FS_NOT_FOUND")
    return window


def scan_window(path: Path, offset: int, limit: int, checkpoint: Checkpoint, limits: Limits) -> Window:
    """Like ``read_window``, with limits of one's own; past the end there are no lines, and that is no error."""
    with fs_errors(path, "read"):
        descriptor = open_regular(path)
        try:
            return _read(descriptor, path, _Collector(offset, limit, limits), checkpoint)
        finally:
            os.close(descriptor)


def _read(descriptor: int, path: Path, collector: _Collector, checkpoint: Checkpoint) -> Window:
    decoder = codecs.getincrementaldecoder("utf-8")()
    start = b""
    try:
        while chunk := os.read(descriptor, _CHUNK_BYTES):
            if len(start) < BINARY_PROBE_BYTES:
                start += chunk[: BINARY_PROBE_BYTES - len(start)]
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

    __slots__ = ("_bytes_left", "_complete", "_current", "_first", "_last", "_line_chars", "_lines", "_open")

    def __init__(self, offset: int, limit: int, limits: Limits) -> None:
        self._first = offset
        self._last = offset + limit - 1
        self._lines: list[Line] = []
        self._bytes_left = limits.window_bytes
        self._line_chars = limits.line_chars
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
        self._current += piece[: self._line_chars + 2 - len(self._current)]

    def _end_line(self) -> None:
        self._complete += 1
        text, self._current = self._current.removesuffix("\r"), ""
        if not self._first <= self._complete <= self._last:
            return
        if len(text) > self._line_chars:
            text = f"{text[: self._line_chars]}... (line truncated to {self._line_chars} chars)"
        self._bytes_left -= len(text.encode()) + 1
        if self._bytes_left < 0:
            self._last = self._complete - 1
        else:
            self._lines.append(Line(self._complete, text))
