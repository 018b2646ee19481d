"""Change text literally, whatever its line breaks are. Pure, except ``change_text``, which does it to a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs

from ..errors import ToolArgsError, ToolError
from ._atomic import publish, turn_on
from ._files import MAX_TEXT_BYTES, Checkpoint, fs_errors, read_contents, real_path

__all__ = ["Changed", "Replacement", "change_text", "encoded", "inserted", "lines_of", "normalised"]

_LINES_LISTED: Final = 20


@attrs.frozen
class Changed:
    """A file's text before and after, with the line breaks it has on disk."""

    before: str
    after: str


def change_text(path: Path, change: Callable[[str], str], checkpoint: Checkpoint) -> Changed:
    """Apply ``change`` to the text of a file, unless somebody else changes the file meanwhile.

    ``change`` is given the text with LF for every CR LF and returns such a text, without surrogates; the file gets back
    the line break that most of its lines had. A byte order mark is a character like others. The last look for a cancel
    is before the new text appears.

    Raises:
        ToolError: What ``change`` raises; ``FS_STALE_VERSION``; ``FS_NOT_TEXT`` for a file that is not UTF-8, or has a
            NUL before or after; ``FS_TOO_LARGE``; other ``FS_*`` codes.

    Source: ``spec/catalogue.md`` 5.11, 6.3.
    """
    target = real_path(path)
    with fs_errors(path, "write"), turn_on(target, checkpoint):
        with fs_errors(path, "read"):
            contents = read_contents(target, checkpoint)
        before = _decoded(path, contents.data)
        changed = change(normalised(before))
        if "\0" in changed:
            msg = f"{path} would not be a text file any more: the new text has NULs"
            raise ToolError(msg, "FS_NOT_TEXT")
        after = changed.replace("\n", "\r\n") if _has_mostly_crlf(before) else changed
        data = after.encode()
        if len(data) >= MAX_TEXT_BYTES:
            raise _too_large()
        publish(target, data, contents.version, checkpoint)
    return Changed(before, after)


def _decoded(path: Path, data: bytes) -> str:
    if b"\0" in data:
        msg = f"{path} is not a text file: it has NUL bytes"
        raise ToolError(msg, "FS_NOT_TEXT")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        msg = f"{path} is not a UTF-8 text file"
        raise ToolError(msg, "FS_NOT_TEXT") from error


def encoded(text: str, name: str) -> bytes:
    """Text as UTF-8; ``name`` is what the text is called in the error.

    Raises:
        ToolArgsError: It holds half of a surrogate pair, which JSON can write and UTF-8 cannot.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolArgsError.of([f'"{name}" must be text that UTF-8 can encode']) from error


def normalised(text: str) -> str:
    """``text`` with LF for every CR LF; a CR alone stays."""
    return text.replace("\r\n", "\n")


def _has_mostly_crlf(text: str) -> bool:
    crlf = text.count("\r\n")
    return crlf > text.count("\n") - crlf


def _too_large() -> ToolError:
    return ToolError("the text would be too large: only files below 10 MiB are edited", "FS_TOO_LARGE")


@attrs.frozen
class Replacement:
    """A literal replacement.

    Attributes:
        path: How the file is called in errors.
        old: What to look for; not empty.
        new: What takes its place.
        name: The parameter that holds ``old``.
        everywhere: Replace all matches, counted from the left without overlap, instead of the only one.
        remedy: What else the model may do about several matches.
    """

    path: str
    old: str
    new: str
    name: str
    everywhere: bool = False
    remedy: str = ""

    def __call__(self, text: str) -> str:
        """The text with the match replaced.

        Raises:
            ToolError: ``FS_EDIT_NOT_FOUND``, ``FS_AMBIGUOUS_EDIT``, ``FS_TOO_LARGE``.
        """
        old, new = normalised(self.old), normalised(self.new)
        starts = _starts(text, old)
        if not starts:
            msg = f"{self.name} does not occur in {self.path}; read the file, and give the text exactly as it is there"
            raise ToolError(msg, "FS_EDIT_NOT_FOUND")
        if len(starts) > 1 and not self.everywhere:
            raise self._ambiguous(text, starts)
        matches = text.count(old) if self.everywhere else 1
        # Asked before it is made: a few thousand matches and a long replacement are more than any memory.
        if len(text) + matches * (len(new) - len(old)) >= MAX_TEXT_BYTES:
            raise _too_large()
        return text.replace(old, new)

    def _ambiguous(self, text: str, starts: list[int]) -> ToolError:
        numbers = dict.fromkeys(text.count("\n", 0, start) + 1 for start in starts[:_LINES_LISTED])
        lines = ", ".join(map(str, numbers)) + (", ..." if len(starts) > _LINES_LISTED else "")
        message = f"{self.name} must occur once in {self.path}, but it starts on lines {lines}"
        return ToolError(f"{message}; add text around it to tell which is meant{self.remedy}", "FS_AMBIGUOUS_EDIT")


def _starts(text: str, old: str) -> list[int]:
    """Where ``old`` begins in ``text``, at most one more often than is listed.

    Matches may overlap: of two that do, it is just as unclear which is meant.
    """
    found: list[int] = []
    start = text.find(old)
    while start >= 0 and len(found) <= _LINES_LISTED:
        found.append(start)
        start = text.find(old, start + 1)
    return found


def lines_of(text: str) -> list[str]:
    """The lines of normalised text; a line break at the end ends the last line and begins none."""
    return text.removesuffix("\n").split("\n") if text else []


def inserted(text: str, after: int, new: str) -> str:
    """Normalised text with whole lines put after line ``after``.

    A line break at the end of ``new`` makes no difference, except at the end of a text that has none there.

    Raises:
        ToolError: There is no such line.
    """
    lines = lines_of(text)
    if after > len(lines):
        msg = f'"insert_line" must be from 0 to {len(lines)}, the number of lines'
        raise ToolError(msg)
    addition = normalised(new)
    open_end = not text.endswith("\n")
    ended = addition.endswith("\n") if after == len(lines) and open_end else not open_end
    joined = "\n".join([*lines[:after], *addition.removesuffix("\n").split("\n"), *lines[after:]])
    return joined + "\n" if ended else joined
