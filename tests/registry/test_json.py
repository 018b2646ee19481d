"""Lossless JSON: what is accepted, what is copied, and what cannot change."""

from __future__ import annotations

import copy
import enum
import inspect
import json
import math
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from json_values import anything, nested, unhurried, values
from quiesce.errors import NotLosslessError
from quiesce.registry import FrozenDict, FrozenList, freeze, is_json, snapshot, thaw
from quiesce.registry._json import json_equal
from quiesce.registry._json_kinds import is_array, is_object
from quiesce.registry._json_walk import copy_slowly

ATOMS = frozenset({bool, int, str, type(None)})
PLAIN: dict[type, type] = {dict: dict, list: list}


def containers(value: Any) -> list[Any]:
    """Every container in a value, itself included."""
    if not is_object(value) and not is_array(value):
        return []
    parts = value.values() if is_object(value) else value
    return [value, *(inner for part in parts for inner in containers(part))]


def at_the_recursion_limit(function: Callable[[], Any], spare: int = 60) -> Any:
    """Call a function with few frames left."""

    def descend(levels: int) -> Any:
        return descend(levels - 1) if levels > 0 else function()

    return descend(sys.getrecursionlimit() - len(inspect.stack(0)) - spare)


class Colour(enum.StrEnum):
    """A string that is not exactly one."""

    RED = "red"


class Record(dict[str, int]):
    """A subclass of dict."""


REFUSED: list[tuple[Any, str, str]] = [
    (math.nan, "", "nan is not a JSON number"),
    (math.inf, "", "inf is not a JSON number"),
    (-0.0, "", "-0.0 is not a JSON number"),
    ({"a": [1, {"b": -math.inf}]}, "a[1].b", "-inf is not a JSON number"),
    ((1, 2), "", "builtins.tuple is none of"),
    ([b"x"], "[0]", "builtins.bytes is none of"),
    ({"a": Colour.RED}, "a", "Colour is none of"),
    ([Record(a=1)], "[0]", "Record is none of"),
    ([OrderedDict()], "[0]", "collections.OrderedDict is none of"),
    ({"a": {1: 2}}, "a", "the key 1 is not a string"),
    ({Colour.RED: 1}, "", "is not a string"),
    ([[{True}]], "[0][0]", "builtins.set is none of"),
    (nested(3000, math.nan, key="k"), "k." * 2999 + "k", "nan is not"),
]


@pytest.mark.parametrize(("value", "path", "problem"), REFUSED, ids=range(len(REFUSED)))
@pytest.mark.parametrize("copy_of", [snapshot, freeze, thaw])
def test_what_is_not_lossless_is_named(copy_of: Callable[[Any], Any], value: Any, path: str, problem: str) -> None:
    """The error tells the path of the first part that is not lossless JSON, and why."""
    with pytest.raises(NotLosslessError) as caught:
        copy_of(value)
    assert caught.value.path == path
    assert problem in caught.value.problem
    assert not is_json(value)


@unhurried
@given(values)
def test_a_snapshot_is_equal_plain_and_detached(value: Any) -> None:
    """A snapshot shares no container with its source, keeps the order of keys, and is made of dict and list."""
    made = snapshot(value)
    assert json_equal(made, value)
    assert repr(made) == repr(value)
    assert not {id(part) for part in containers(made)} & {id(part) for part in containers(value)}
    assert {type(part) for part in containers(made)} <= {dict, list}


@unhurried
@given(values)
def test_a_frozen_value_passes_for_a_plain_one(value: Any) -> None:
    """What is frozen is equal to the plain value, prints and encodes the same, and thaws to it."""
    frozen = freeze(value)
    assert frozen == value
    assert value == frozen
    assert repr(frozen) == repr(value)
    assert json.dumps(frozen) == json.dumps(value)
    assert {type(part) for part in containers(frozen)} <= {FrozenDict, FrozenList}
    for plain in (thaw(frozen), copy.deepcopy(frozen)):
        assert repr(plain) == repr(value)
        assert {type(part) for part in containers(plain)} <= {dict, list}


@unhurried
@given(values)
def test_a_frozen_value_comes_back_frozen_from_a_pickle(value: Any) -> None:
    """Pickling keeps the value and that it is frozen, under every protocol."""
    for frozen in (freeze({"value": value}), freeze([value])):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            back = pickle.loads(pickle.dumps(frozen, protocol))  # noqa: S301 - our own
            assert repr(back) == repr(frozen)
            assert {type(part) for part in containers(back)} <= {FrozenDict, FrozenList}


@unhurried
@given(anything)
def test_the_fast_and_the_slow_walk_agree(value: Any) -> None:
    """``is_json``, ``snapshot`` and ``freeze`` accept exactly what the walk that names faults accepts."""

    def outcome(copy_of: Callable[[Any], Any]) -> str:
        try:
            return repr(copy_of(value))
        except NotLosslessError as error:
            return f"refused: {error.path!r} {error.problem}"

    slow = outcome(lambda source: copy_slowly(source, ATOMS, PLAIN))
    assert outcome(snapshot) == outcome(freeze) == slow
    assert is_json(value) != slow.startswith("refused")


CHANGES: list[Callable[[Any], object]] = [
    lambda d: d.__setitem__("a", 2),
    lambda d: d.__delitem__("a"),
    lambda d: d.__ior__({"b": 1}),
    lambda d: d.clear(),
    lambda d: d.pop("a"),
    lambda d: d.popitem(),
    lambda d: d.setdefault("b", 1),
    lambda d: d.update(b=1),
    lambda d: d["l"].__setitem__(0, 2),
    lambda d: d["l"].__setitem__(slice(None), ()),
    lambda d: d["l"].__delitem__(0),
    lambda d: d["l"].__iadd__([1]),
    lambda d: d["l"].__imul__(2),
    lambda d: d["l"].append(1),
    lambda d: d["l"].clear(),
    lambda d: d["l"].extend([1]),
    lambda d: d["l"].insert(0, 1),
    lambda d: d["l"].pop(),
    lambda d: d["l"].remove(2),
    lambda d: d["l"].reverse(),
    lambda d: d["l"].sort(),
]


@pytest.mark.parametrize("change", CHANGES, ids=range(len(CHANGES)))
def test_a_frozen_value_refuses_every_change(change: Callable[[Any], object]) -> None:
    """Each method that changes a dict or list raises, says how to get a copy, and changes nothing."""
    frozen: Any = freeze({"a": 1, "l": [2, 1]})
    with pytest.raises(TypeError, match=r"is frozen and cannot be changed; quiesce\.registry\.thaw"):
        change(frozen)
    assert frozen == {"a": 1, "l": [2, 1]}


def test_augmented_assignment_refuses_too() -> None:
    """``|=``, ``+=`` and ``*=`` raise instead of binding a changed copy."""
    frozen: Any = freeze({"l": [1]})
    same = frozen
    with pytest.raises(TypeError):
        frozen |= {"b": 1}
    array = frozen["l"]
    with pytest.raises(TypeError):
        array += [2]
    with pytest.raises(TypeError):
        array *= 2
    assert frozen is same
    assert same == {"l": [1]}


def test_no_method_that_changes_a_container_is_forgotten() -> None:
    """Every method that dict or list has, and the frozen classes do not refuse, is one that only reads."""
    reads = {"__init__", "__new__", "copy", "count", "fromkeys", "get", "index", "items", "keys", "values"}
    reads |= {"__add__", "__mul__", "__rmul__", "__or__", "__ror__", "__contains__", "__iter__", "__len__"}
    reads |= {"__getitem__", "__reversed__", "__class_getitem__", "__sizeof__", "__hash__", "__doc__"}
    for frozen, base in ((FrozenDict, dict), (FrozenList, list)):
        own = set(vars(base)) - set(vars(object)) - reads
        assert {name for name in own if name not in vars(frozen)} == set()


def test_the_constructors_check_and_freeze() -> None:
    """A frozen container made by hand is as frozen, and as lossless, as one that ``freeze`` made."""
    made = FrozenDict({"l": [1, {}]}, b=2)
    assert made == {"l": [1, {}], "b": 2}
    assert type(made["l"]) is FrozenList
    assert FrozenList([1, [2]]) == [1, [2]]
    assert FrozenDict() == {}
    assert FrozenList() == []
    with pytest.raises(NotLosslessError):
        FrozenDict(a=math.nan)
    with pytest.raises(NotLosslessError):
        FrozenList([object()])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


def test_calling_init_again_changes_nothing() -> None:
    """``dict.__init__`` would fill the container a second time."""
    made, array = FrozenDict(a=1), FrozenList([1])
    made.__init__({"b": 2})
    array.__init__([2])
    assert made == {"a": 1}
    assert array == [1]


def test_frozen_values_are_shared_not_copied() -> None:
    """Freezing what is frozen gives the same object, also inside a new container."""
    inner = freeze({"a": [1]})
    assert freeze(inner) is inner
    outer: Any = freeze({"x": inner, "y": [inner]})
    assert outer["x"] is inner
    assert outer["y"][0] is inner


def test_shallow_copies_are_plain() -> None:
    """``copy``, ``copy.copy``, ``|`` and ``+`` give plain containers of the frozen parts."""
    frozen: Any = freeze({"l": [1]})
    for made in (frozen.copy(), copy.copy(frozen), frozen | {}, {} | frozen):
        assert type(made) is dict
        assert made["l"] is frozen["l"]
    for array in (frozen["l"].copy(), copy.copy(frozen["l"]), frozen["l"] + [], frozen["l"][:]):
        assert type(array) is list


def test_a_shared_part_is_copied_twice() -> None:
    """Two ways to one container give two containers, and are no cycle."""
    shared = [1]
    made: Any = snapshot({"a": shared, "b": [shared]})
    assert made == {"a": [1], "b": [[1]]}
    assert made["a"] is not made["b"][0]
    deep = nested(200, [shared, shared])
    assert json_equal(snapshot(deep), deep)


@pytest.mark.parametrize("levels", [0, 1, 100])
def test_a_cycle_is_refused_and_named(levels: int) -> None:
    """A container inside itself is no JSON, however far down."""
    ring: dict[str, Any] = {"n": 1}
    ring["me"] = nested(levels, ring, key="k")
    for copy_of in (snapshot, freeze):
        with pytest.raises(NotLosslessError, match="it contains itself") as caught:
            copy_of(ring)
        assert caught.value.path == ".".join(["me", *["k"] * levels])
    assert not is_json(ring)
    ring["me"] = None
    assert snapshot(ring) == {"n": 1, "me": None}


@pytest.mark.parametrize("key", [None, "k"])
def test_twenty_thousand_levels_work(key: str | None) -> None:
    """Depth is no limit: copying, freezing, recognising, thawing and comparing do not recurse."""
    deep = nested(20_000, key=key)
    frozen = freeze(deep)
    assert is_json(deep)
    assert is_json(frozen)
    assert json_equal(snapshot(deep), frozen)
    assert json_equal(thaw(frozen), deep)
    assert not json_equal(deep, nested(20_000, 2, key=key))
    assert not is_json(nested(20_000, math.nan, key=key))


def test_a_caller_near_the_recursion_limit_is_served() -> None:
    """With few frames left the walks fall back to their own stack."""
    value = nested(50, {"a": [1, 2.5]})

    def walk() -> Any:
        return is_json(value), snapshot(value), freeze(value)

    accepted, copied, frozen = at_the_recursion_limit(walk)
    assert accepted
    assert json_equal(copied, value)
    assert json_equal(frozen, value)


def test_any_int_is_lossless() -> None:
    """Python's integers are exact, so none is refused."""
    assert snapshot([2**53 + 1, 10**5000]) == [2**53 + 1, 10**5000]
