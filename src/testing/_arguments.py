"""Arguments for a tool, drawn from its parameter schema: valid ones, and odd ones that may or may not be valid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import attrs

from ..errors import ToolArgsError
from ..registry import Arguments, JsonValue, ToolDefinition, freeze, is_json, thaw
from ._errors import MissingExtraError
from ._schema_strategy import values_of_schema

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["Case", "odd_cases", "reach_body", "valid_arguments", "valid_cases"]

Place: TypeAlias = "tuple[str | int, ...]"

# No "/", ".." or "~": the tool really runs, and may delete what it is told to.
_TEXTS: Final = (
    "",
    " ",
    "\n",
    "\x00",
    "a\x00b",
    "\ud800",  # half of a surrogate pair: JSON can write it, UTF-8 cannot
    "\udcff",
    "e\u0301\u202e\ufeff",
    "\U0001f600",
    "-",
    "--help",
    "%s{}$HOME`",
    "NaN",
    "null",
)
_INTEGERS: Final = (0, 1, -1, 2**31, 2**53 + 1, -(2**63) - 1, 10**30, 10**400)  # the last is more than any float
_NUMBERS: Final = (0.0, 0.5, -1.0, 5e-324, 1e16, 1e308, -1e308)
_OTHER_KINDS: Final[tuple[JsonValue, ...]] = (None, False, True, 0, 1, 1.5, "", "1", [], {})
_LONGEST: Final = 20_000
_DEEPEST: Final = 400
"""Levels of nesting. quiesce takes 5,000; Python's own json, which many tools use, gives up below 1,000."""
_MOST_PLACES: Final = 60


@attrs.frozen
class Case:
    """What one example of a check is about.

    Attributes:
        first: Arguments.
        second: Arguments of a second call, often with parts of the first.
        moments: Where to cancel, each as hundredths of the steps of an undisturbed run.
        seed: For the task orders of the example.
    """

    first: JsonValue
    second: JsonValue = None
    moments: tuple[int, ...] = ()
    seed: int = 0


def reach_body(definition: ToolDefinition, arguments: JsonValue) -> bool:
    """Whether a call with these arguments would invoke the body: they fit the schema, and become what it takes."""
    if not is_json(arguments) or definition.check_arguments(arguments):
        return False
    try:
        definition.bind(cast("Arguments", freeze(arguments)), None)
    except ToolArgsError:
        return False
    except Exception:  # noqa: BLE001 - that is for the check to find
        return True
    return True


def valid_arguments(definition: ToolDefinition) -> SearchStrategy[JsonValue]:
    """Arguments with which the body is reached, drawn from its parameter schema; see ``values_of_schema``.

    Raises:
        MissingExtraError: The extra ``testing`` is not installed.
        ValueError: The schema is nested too deeply.
    """
    try:
        return values_of_schema(cast("dict[str, Any]", thaw(definition.parameters))).filter(
            partial(reach_body, definition)
        )
    except ImportError as error:
        raise MissingExtraError("check_tool()", "hypothesis") from error
    except RecursionError:
        msg = f'the parameters of tool "{definition.name}" are nested too deeply to draw from; give arguments='
        raise ValueError(msg) from None


def valid_cases(valid: SearchStrategy[JsonValue], accepts: Callable[[JsonValue], bool]) -> SearchStrategy[Case]:
    """Cases of two calls with valid arguments.

    Args:
        valid: Arguments.
        accepts: Whether arguments are valid: a mixture of two valid ones need not be.
    """
    from hypothesis import strategies as st  # noqa: PLC0415 - an extra

    @st.composite
    def case(draw: Callable[[SearchStrategy[Any]], Any]) -> Case:
        first: JsonValue = draw(valid)
        second: JsonValue = draw(valid)
        if isinstance(first, dict) and isinstance(second, dict) and first:
            taken: set[str] = draw(st.sets(st.sampled_from(sorted(first))))
            mixed: JsonValue = {**second, **{name: first[name] for name in taken}}
            second = mixed if accepts(mixed) else second
        moments = draw(st.lists(st.integers(0, 99), max_size=3, unique=True))
        return Case(first, second, tuple(moments), draw(st.integers(0, 2**16)))

    return case()


def odd_cases(valid: SearchStrategy[JsonValue]) -> SearchStrategy[Case]:
    """Cases of one call with one thing odd about its arguments: a value at the edge, or of a wrong kind, or missing."""
    from hypothesis import strategies as st  # noqa: PLC0415 - an extra

    @st.composite
    def case(draw: Callable[[SearchStrategy[Any]], Any]) -> Case:
        base = draw(valid)
        place = draw(st.sampled_from(list(_places(base))))
        return Case(_with(base, place, draw(_in_place_of(_at(base, place)))))

    return case()


def _in_place_of(value: JsonValue) -> SearchStrategy[JsonValue]:
    from hypothesis import strategies as st  # noqa: PLC0415 - an extra

    wrong = st.sampled_from(_OTHER_KINDS)
    deep = st.sampled_from((2, _DEEPEST)).map(_nested)
    long = st.integers(0, _LONGEST).map(lambda length: "x" * length)
    same: SearchStrategy[Any]
    match value:
        case bool() | None:
            same = st.booleans()
        case str():
            same = st.sampled_from(_TEXTS) | long
        case int() | float():
            same = st.sampled_from((*_INTEGERS, *_NUMBERS))
        case list():
            same = st.sampled_from(([], value[:1] * 2, value * 2, value * 100)) | deep
        case dict():
            same = _other_keys(value)
    return same | same | wrong | deep  # `same` counts twice: what is valid tells more of a tool


def _other_keys(value: dict[str, JsonValue]) -> SearchStrategy[JsonValue]:
    from hypothesis import strategies as st  # noqa: PLC0415 - an extra

    less = [{key: each for key, each in value.items() if key != gone} for gone in value]
    more = [
        {**value, name: extra} for name in ("extra", "", "\ud800", "__class__") for extra in (None, "x", _nested(9))
    ]
    return st.sampled_from([{}, *less, *more])


def _nested(levels: int) -> JsonValue:
    value: JsonValue = []
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


def _places(value: JsonValue) -> Iterator[Place]:
    """The places of a value and of what is in it, the outermost first."""
    found: list[tuple[Place, JsonValue]] = [((), value)]
    for place, inner in found:
        yield place
        if len(found) > _MOST_PLACES:
            continue
        if isinstance(inner, dict):
            found += [((*place, key), each) for key, each in inner.items()]
        elif isinstance(inner, list):
            found += [((*place, index), each) for index, each in enumerate(inner)]


def _at(value: JsonValue, place: Place) -> JsonValue:
    inner: Any = value
    for step in place:
        inner = inner[step]
    return cast("JsonValue", inner)


def _with(value: JsonValue, place: Place, new: JsonValue) -> JsonValue:
    if not place:
        return new
    copied: Any = dict(value) if isinstance(value, dict) else list(cast("list[JsonValue]", value))
    copied[place[0]] = _with(copied[place[0]], place[1:], new)
    return cast("JsonValue", copied)
