"""What is wrong with arguments that are valid under their schema and still not what a function takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import attrs

__all__ = ["MisfitError", "Violation", "below", "collect", "refuse"]


@attrs.frozen
class Violation:
    """One fault, worded ``before "path" after``.

    Attributes:
        path: Where it is below the value at hand: begins with ``.`` or ``[``, or is empty for the value itself.
        after: What follows the path.
        before: What stands in front of it.
    """

    path: str
    after: str
    before: str = ""


class MisfitError(Exception):
    """A value does not have the declared type, although it may be valid under its schema.

    Attributes:
        violations: Every fault, in order.
    """

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__(violations)
        self.violations = violations

    def texts(self, path: str) -> list[str]:
        """The violations of the value at ``path``, in the words that the validator uses for its own."""
        return [f'{each.before}"{path}{each.path}" {each.after}'.rstrip() for each in self.violations]


def refuse(after: str) -> NoReturn:
    """Refuse a value.

    Raises:
        MisfitError: Always.
    """
    raise MisfitError([Violation("", after)]) from None


def below(error: MisfitError, path: str) -> list[Violation]:
    """The violations of a part of a value, seen from the value."""
    return [attrs.evolve(each, path=path + each.path) for each in error.violations]


def collect(parts: Iterable[tuple[str, Callable[[Any], object], object]]) -> list[Any]:
    """Convert the parts of a value.

    Args:
        parts: The path of each, its conversion and its value.

    Raises:
        MisfitError: With the violations of all parts.
    """
    done: list[Any] = []
    violations: list[Violation] = []
    for path, convert, value in parts:
        try:
            done.append(convert(value))
        except MisfitError as error:
            violations += below(error, path)
    if violations:
        raise MisfitError(violations)
    return done
