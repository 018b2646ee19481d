"""Make a failing list of choices small. Pure: what runs the scenario is a function given to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

__all__ = ["Choices", "shrink"]

Choices: TypeAlias = tuple[int, ...]


def shrink(choices: Choices, fails: Callable[[Choices], Choices | None], budget: int) -> Choices:
    """The smallest failing choices found.

    Smaller means: shorter without the zeros at the end, then fewer that are not zero, then smaller ones.

    Args:
        choices: A list that fails.
        fails: Runs the scenario with these choices, zeros after them; the choices it made if it failed in the same
            way, else ``None``.
        budget: Most runs.
    """
    best = _trim(choices)
    tried = {best}
    changed = True
    while changed:
        changed = False
        for candidate in _smaller(best):
            if candidate in tried or _size(candidate) >= _size(best):
                continue
            if budget <= 0:
                return best
            budget -= 1
            tried.add(candidate)
            made = fails(candidate)
            if made is None:
                continue
            made = _trim(made)
            best = made if _size(made) < _size(candidate) else candidate
            changed = True
            break
    return best


def _trim(choices: Choices) -> Choices:
    end = len(choices)
    while end and not choices[end - 1]:
        end -= 1
    return choices[:end]


def _size(choices: Choices) -> tuple[int, int, Choices]:
    return len(choices), sum(1 for choice in choices if choice), choices


def _smaller(choices: Choices) -> Iterator[Choices]:
    """Candidates, the boldest first: each differs from ``choices`` in one way."""
    length = len(choices)
    yield ()
    kept = length // 2
    while 0 < kept < length:
        yield _trim(choices[:kept])
        kept += max(1, (length - kept) // 2)
    block = length // 2
    while block:
        for start in range(0, length, block):
            end = start + block
            yield _trim((*choices[:start], *choices[end:]))
            if any(choices[start:end]):
                yield _trim((*choices[:start], *([0] * len(choices[start:end])), *choices[end:]))
        block //= 2
    for place, choice in enumerate(choices):
        for lower in range(choice):
            yield _trim((*choices[:place], lower, *choices[place + 1 :]))
