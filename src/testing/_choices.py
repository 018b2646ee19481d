"""A schedule as data: the choices of one run, and the short text that carries them to another machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

import attrs
import trio

__all__ = ["Granularity", "Schedule"]

Granularity: TypeAlias = Literal["batch", "step"]

_FORMAT = "q1"
_LONGEST = 1_000_000
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_ZERO_RUNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # A is two zeros, B three, ... Z twenty-seven
_MARKS: dict[Granularity, str] = {"batch": "b", "step": "s"}
_GRANULARITIES: dict[str, Granularity] = {mark: name for name, mark in _MARKS.items()}
_TOKEN = re.compile(r"\{(?P<large>\d{1,9})\}|(?P<zeros>[A-Z])|(?P<digit>[0-9a-z])")
_TEXT = re.compile(rf"{_FORMAT}-(?P<trio>[^-\s]+)-(?P<mark>[bs])-(?P<choices>(?:\{{\d{{1,9}}\}}|[A-Za-z0-9])*)")


def _nonnegative(_instance: object, _attribute: object, value: tuple[int, ...]) -> None:
    if any(choice < 0 for choice in value):
        msg = f"choices are places in a list, from 0; got {value!r}"
        raise ValueError(msg)


def _trimmed(choices: Iterable[int]) -> tuple[int, ...]:
    """Without the zeros at the end: a run that has no choices left takes the first task each time."""
    kept = list(choices)
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept)


@attrs.frozen
class Schedule:
    """Which task ran when: one choice for each moment at which more than one could.

    Choice 0 is the task that is older, or with ``step`` the one that ran last; so a schedule of zeros is the plain one,
    and zeros at its end say nothing and are dropped.

    Attributes:
        choices: Places in the list of tasks that could run, in the order of the run.
        granularity: ``batch``: each choice picks the next task of the batch that trio is about to run, so every
            schedule is one that trio itself may take. ``step``: each choice picks one task that runs to its next
            checkpoint while all others wait, as if what they wait for had come later.
        trio_version: The version of trio that the choices were made under; this one's unless given.
    """

    choices: tuple[int, ...] = attrs.field(converter=_trimmed, validator=_nonnegative)
    granularity: Granularity = attrs.field(default="batch", validator=attrs.validators.in_(tuple(_MARKS)))
    trio_version: str = trio.__version__

    def __str__(self) -> str:
        """The replay string: letters, digits, dots, dashes and braces only."""
        return f"{_FORMAT}-{self.trio_version}-{_MARKS[self.granularity]}-{_packed(self.choices)}"

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """Read a replay string.

        Raises:
            ValueError: It is not one, or is of a format that this version does not know.
        """
        found = _TEXT.fullmatch(text.strip()) if isinstance(text, str) and len(text) <= _LONGEST else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if found is None:
            msg = (
                f"not a replay string: {text!r:.200}. It looks like {_FORMAT}-0.35.0-b-B1A2; copy it whole from the "
                f"report of the failing run"
            )
            raise ValueError(msg)
        return cls(tuple(_unpacked(found["choices"])), _GRANULARITIES[found["mark"]], found["trio"])


def _packed(choices: tuple[int, ...]) -> str:
    parts: list[str] = []
    zeros = 0
    for choice in (*choices, None):
        if choice == 0 and zeros < len(_ZERO_RUNS) + 1:
            zeros += 1
            continue
        if zeros:
            parts.append("0" if zeros == 1 else _ZERO_RUNS[zeros - 2])
        zeros = int(choice == 0)
        if choice:
            parts.append(_DIGITS[choice] if choice < len(_DIGITS) else f"{{{choice}}}")
    return "".join(parts)


def _unpacked(text: str) -> Iterable[int]:
    for token in _TOKEN.finditer(text):
        if token["large"] is not None:
            yield int(token["large"])
        elif token["zeros"] is not None:
            yield from [0] * (_ZERO_RUNS.index(token["zeros"]) + 2)
        else:
            yield _DIGITS.index(token["digit"])
