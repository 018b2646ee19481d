"""What the ``view`` command of ``str_replace_editor`` shows: a file with numbered lines, or two levels of a folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from ..errors import ToolError
from ._files import Checkpoint, fs_errors, real_path
from ._text_window import Limits, scan_window

__all__ = ["ViewRange", "view"]

_MOST_CHARS: Final = 16_000
_CLIPPED: Final = "\n<response clipped>"
# Whatever these limits leave out would be clipped anyway: a character has at most four bytes, and when a line does not
# fit any more, those before it have more than half of the bytes.
_LIMITS: Final = Limits(line_chars=_MOST_CHARS, window_bytes=2 * 4 * _MOST_CHARS + 1_000)
_LEVELS: Final = 2
_LEFT_OUT: Final = frozenset({"node_modules", "__pycache__"})
_NO_END: Final = 1 << 62


@attrs.frozen
class ViewRange:
    """The lines to show.

    Attributes:
        first: From 1.
        last: Included; ``None`` is the last of the file.
    """

    first: int
    last: int | None


def view(path: Path, lines: ViewRange | None, checkpoint: Checkpoint) -> str:
    """The text that is shown of a file or folder, at most 16,000 characters and a note.

    Raises:
        ToolError: The range lies outside the file, or is given for a folder; ``FS_*`` codes.

    Source: ``spec/catalogue.md`` 5.8.
    """
    real_path(path)
    with fs_errors(path, "read"):
        if not path.is_dir():
            return _clipped(_file(path, lines or ViewRange(1, None), checkpoint))
        if lines is not None:
            msg = f'"view_range" is for files, and {path} is a folder; leave it out'
            raise ToolError(msg)
        return _clipped(_listing(path, checkpoint))


def _clipped(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS] + _CLIPPED


def _file(path: Path, lines: ViewRange, checkpoint: Checkpoint) -> str:
    limit = _NO_END if lines.last is None else lines.last - lines.first + 1
    window = scan_window(path, lines.first, limit, checkpoint, _LIMITS)
    if lines.first > max(window.total, 1):
        msg = f'"view_range" must begin within the {window.total} lines of {path}'
        raise ToolError(msg)
    shown = "".join(f"\n{line.number:>6}  {line.text}" for line in window.lines)
    return f"{path} (total {window.total} lines){shown}"


def _listing(folder: Path, checkpoint: Checkpoint) -> str:
    shown: list[str] = []
    chars = 0
    for line in _folder(folder, _LEVELS, checkpoint):
        shown.append(line)
        chars += len(line) + 1
        if chars > _MOST_CHARS + 1:  # the rest would be clipped
            break
    return "\n".join(shown)


def _folder(folder: Path, levels: int, checkpoint: Checkpoint) -> Iterator[str]:
    with os.scandir(folder) as entries:
        found = sorted((entry for entry in entries if not _is_left_out(entry.name)), key=lambda entry: entry.name)
    for entry in found:
        checkpoint()
        yield f"{_kind(entry)}\t{entry.path}"
        if levels > 1 and entry.is_dir(follow_symlinks=False):
            try:
                yield from _folder(Path(entry.path), levels - 1, checkpoint)
            except OSError:  # gone meanwhile, or not ours to read: the rest of the tree is shown all the same
                continue


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name in _LEFT_OUT


def _kind(entry: os.DirEntry[str]) -> str:
    try:
        mode = entry.stat().st_mode
    except OSError:  # a broken link, or gone meanwhile
        return "?"
    return "d" if stat.S_ISDIR(mode) else "f" if stat.S_ISREG(mode) else "?"
