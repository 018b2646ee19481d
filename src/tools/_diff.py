"""Diff cards: what a call changed in a text, in hunks with three lines of context."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Final, TypeAlias

from ..registry import JsonValue, Outcome
from ._cards import card_of
from ._text_edit import lines_of, normalised

__all__ = ["call_card", "diff_meta", "present_diff"]

_CONTEXT: Final = 3
_MOST_COMPARED: Final = 100_000
"""Pairs of lines that may be compared: it is done on trio's thread, and takes the square of the lines at worst."""
_MOST_CHARS: Final = 64 * 1024
"""Characters of all hunks together: they are kept in the journal."""

_Hunk: TypeAlias = tuple[int, int, int, int]
"""Old lines from and to, new lines from and to; from 0, the end not included."""


def call_card(title: str, path: str, old: str | None, new: str) -> JsonValue:
    """The card of a call that will put ``new`` in the place of ``old``; ``None`` is no file.

    Source: ``spec/catalogue.md`` 1.6.
    """
    diff: JsonValue = {"path": path, "oldText": old, "newText": new}
    return {"type": "diff", "title": title, "diffs": [diff], "locations": [{"path": path}]}


def present_diff(_arguments: object, outcome: Outcome) -> JsonValue:
    """The ``diff`` card of a result, from its metadata."""
    return card_of(outcome.meta, "diff", {"title", "diffs"})


def diff_meta(title: str, path: str, old: str | None, new: str) -> JsonValue:
    """What the ``diff`` card of a result is made from: hunks, or the whole text of a new file (``old`` is ``None``).

    Hunks beyond 64 Ki characters are left out, and ``truncated`` says so.

    Source: ``spec/catalogue.md`` 5.10.
    """
    kept: list[JsonValue] = []
    left = _MOST_CHARS
    hunks = [(1, None, new)] if old is None else _hunks(lines_of(normalised(old)), lines_of(normalised(new)))
    for line, before, after in hunks:
        left -= len(before or "") + len(after)
        if left < 0:
            break
        kept.append({"path": path, "line": line, "oldText": before, "newText": after})
    return {"title": title, "diffs": kept, "truncated": len(kept) < len(hunks)}


def _hunks(old: list[str], new: list[str]) -> list[tuple[int, str | None, str]]:
    """Line number in the new text, old text and new text of each hunk."""
    return [
        (start + 1, "\n".join(old[first:last]), "\n".join(new[start:end]))
        for first, last, start, end in _changes(old, new)
    ]


def _changes(old: list[str], new: list[str]) -> list[_Hunk]:
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    tail = next((index for index in range(shorter - head) if old[-1 - index] != new[-1 - index]), shorter - head)
    old_end, new_end = len(old) - tail, len(new) - tail
    if head == old_end and head == new_end:
        return []
    if (old_end - head) * (new_end - head) > _MOST_COMPARED:
        return [_widened((head, old_end, head, new_end), len(old), len(new))]
    begin, extra = max(head - _CONTEXT, 0), min(tail, _CONTEXT)
    matcher = SequenceMatcher(None, old[begin : old_end + extra], new[begin : new_end + extra], autojunk=False)
    return [
        (begin + group[0][1], begin + group[-1][2], begin + group[0][3], begin + group[-1][4])
        for group in matcher.get_grouped_opcodes(_CONTEXT)
    ]


def _widened(hunk: _Hunk, old: int, new: int) -> _Hunk:
    first, last, start, end = hunk
    before, after = min(first, _CONTEXT), min(old - last, new - end, _CONTEXT)
    return first - before, last + after, start - before, end + after
