"""What a function returns becomes JSON and content as its return annotation says."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict

import attrs
import pytest

from quiesce import tool
from quiesce.errors import NotLosslessError
from quiesce.registry import FrozenDict, ImageBlock, OtherBlock, TextBlock, as_content, freeze, snapshot


class Color(enum.Enum):
    """Strings."""

    RED = "red"


class Level(enum.IntEnum):
    """Numbers."""

    LOW = 1


class Options(TypedDict):
    """A dict with declared keys."""

    path: Path
    count: int


class Pair(NamedTuple):
    """A tuple with names."""

    left: int
    right: Color = Color.RED


@attrs.frozen
class Circle:
    """With a private field and a computed one."""

    radius: float
    _hidden: int = 3
    area: float = attrs.field(init=False, default=0.5)


@dataclass
class Square:
    """A dataclass."""

    side: float
    colors: tuple[Color, ...] = ()


@dataclass
class Special(Square):
    """A subclass of one."""

    extra: int = 0


def giver(annotation: Any) -> Any:
    """A tool that returns values of an annotation."""

    def give() -> Any: ...

    give.__annotations__ = {"return": annotation}
    return tool(give)


def written(annotation: Any, value: Any) -> Any:
    """The frozen JSON of a value, valid under the output schema."""
    definition = giver(annotation)
    frozen = freeze(value if definition.unstructure is None else definition.unstructure(value))
    assert definition.check_value(frozen) == []
    return frozen


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Color, Color.RED, "red"),
        (Level, Level.LOW, 1),
        (Literal[Color.RED, 1], Color.RED, "red"),
        (Path, Path("a/b"), "a/b"),
        (datetime.date, datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.datetime, datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), "2026-01-02T00:00:00+00:00"),
        (datetime.time, datetime.time(1, 2), "01:02:00"),
        (datetime.date | datetime.datetime, datetime.datetime(2026, 1, 2), "2026-01-02T00:00:00"),
        (tuple[int, Path], (1, Path("a")), [1, "a"]),
        (tuple[Path, ...], (Path("a"),), ["a"]),
        (Sequence[int], (1, 2), [1, 2]),
        (Sequence[int], [1, 2], [1, 2]),
        (Iterable[str], {"b", "a"}, ["a", "b"]),
        (set[int], {10, 9, 1}, [1, 9, 10]),
        (set[Any], {"a", 1}, ["a", 1]),
        (frozenset[Color], frozenset({Color.RED}), ["red"]),
        (set[Pair], {Pair(2), Pair(1)}, [{"left": 1, "right": "red"}, {"left": 2, "right": "red"}]),
        (dict[str, Path], {"a": Path("b")}, {"a": "b"}),
        (Mapping[Color, int], {Color.RED: 1}, {"red": 1}),
        (Circle, Circle(1.0), {"radius": 1.0, "hidden": 3, "area": 0.5}),
        (Circle, {"radius": 1.0, "hidden": 3, "area": 0.5}, {"radius": 1.0, "hidden": 3, "area": 0.5}),
        (Square, Square(1.0, (Color.RED,)), {"side": 1.0, "colors": ["red"]}),
        (Square, Special(1.0), {"side": 1.0, "colors": []}),
        (Pair, Pair(1), {"left": 1, "right": "red"}),
        (Options, {"path": Path("a"), "count": 1}, {"path": "a", "count": 1}),
        (Options | None, {"path": Path("a"), "count": 1}, {"path": "a", "count": 1}),
        (Options | None, None, None),
        (Circle | Square, Square(1.0), {"side": 1.0, "colors": []}),
        (Square | Special, Special(1.0), {"side": 1.0, "colors": [], "extra": 0}),
        (list[Path] | list[Color], [Color.RED], ["red"]),
        (list[Path] | list[int], [1], [1]),
        (Path | int | None, Path("a"), "a"),
        (Any, {"a": [1]}, {"a": [1]}),
        (None, None, None),
        (int, 1, 1),
        (list[str], ["a"], ["a"]),
    ],
)
def test_a_value_of_the_declared_type_becomes_json(annotation: Any, value: Any, expected: Any) -> None:
    """It is lossless, valid, and says what the value said."""
    assert written(annotation, value) == expected


@pytest.mark.parametrize(
    ("annotation", "value", "path"),
    [
        (Any, {"a": [Color.RED]}, "a[0]"),
        (str, Color.RED, ""),
        (int, Level.LOW, ""),
        (list[int], (1,), ""),
        (list[Circle], [Circle(1.0), Square(1.0)], "[1]"),
        (Circle, Square(1.0), ""),
        (dict[str, Path], {"a": {"b": Path("c")}}, "a.b"),
        (tuple[int, int], (1, 2, 3), ""),
        (datetime.date, datetime.datetime(2026, 1, 2), ""),
        (Circle | Square, Path("a"), ""),
        (list[Path] | list[Color], [Path("a"), Color.RED], "[1]"),
        (set[Any], {Color.RED}, "[0]"),
        (float, float("nan"), ""),
        (Options, {"path": Path("a"), "count": Path("b")}, "count"),
        (Square, Square(1.0, [Color.RED]), "colors[0]"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        (dict[str, int], {1: 2}, ""),
        (TextBlock, Path("a"), ""),
    ],
)
def test_a_value_of_another_type_stays_and_is_refused_by_its_path(annotation: Any, value: Any, path: str) -> None:
    """Only the declared type is converted; for the rest the lossless check says where it is."""
    definition = giver(annotation)
    with pytest.raises(NotLosslessError) as caught:
        freeze(value if definition.unstructure is None else definition.unstructure(value))
    assert caught.value.path == path


def test_plain_json_costs_nothing() -> None:
    """Where the declared type is JSON already there is no conversion at all."""
    for annotation in (Any, int, list[str], dict[str, Any], dict[str, list[int]], int | None, Literal["a"]):
        assert giver(annotation).unstructure is None


BLOCKS = [
    (TextBlock, TextBlock("a"), {"type": "text", "text": "a"}),
    (ImageBlock, ImageBlock("image/png", "AA=="), {"type": "image", "mediaType": "image/png", "data": "AA=="}),
    (OtherBlock, OtherBlock(FrozenDict({"type": "x"})), {"type": "x"}),
    (TextBlock | ImageBlock, ImageBlock(url="u"), {"type": "image", "url": "u"}),
    (str | ImageBlock, "text", "text"),
    (list[TextBlock], [TextBlock("a")], [{"type": "text", "text": "a"}]),
    (
        tuple[str | ImageBlock, ...],
        ("a", ImageBlock(url="u")),
        ["a", {"type": "image", "url": "u"}],
    ),
    (
        tuple[TextBlock, ImageBlock],
        (TextBlock("a"), ImageBlock(url="u")),
        [{"type": "text", "text": "a"}, {"type": "image", "url": "u"}],
    ),
    (Sequence[TextBlock | ImageBlock | OtherBlock], [OtherBlock(FrozenDict({"type": "x"}))], [{"type": "x"}]),
]


@pytest.mark.parametrize(("annotation", "value", "expected"), BLOCKS)
def test_declared_content_blocks_are_the_content(annotation: Any, value: Any, expected: Any) -> None:
    """The value is the JSON of the blocks, and the content is the blocks themselves."""
    frozen = written(annotation, value)
    assert snapshot(frozen) == expected
    assert giver(annotation).output.render(FrozenDict(), frozen) == as_content(value)


def test_no_block_is_no_content() -> None:
    """``None`` beside blocks shows nothing."""
    assert giver(TextBlock | None).output.render(FrozenDict(), None) == ()


@pytest.mark.parametrize("annotation", [str, list[str], None, dict[str, TextBlock], list[int | TextBlock]])
def test_other_values_are_shown_as_text(annotation: Any) -> None:
    """A string stands for itself, ``None`` for nothing, the rest as JSON."""
    render = giver(annotation).output.render
    assert [render(FrozenDict(), value) for value in ("a", None, [1, "b"])] == ["a", "", '[1,"b"]']


def test_a_render_option_wins_over_the_blocks() -> None:
    """Whoever renders, renders."""

    @tool(render=lambda _arguments, value: f"<{value}>")
    def shown() -> TextBlock:
        return TextBlock("a")

    assert shown.output.render(FrozenDict(), "x") == "<x>"
