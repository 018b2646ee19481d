"""The one JSON text of a value, and when two values are the same JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from json_values import nested, numbers, unhurried, values
from quiesce.errors import NotLosslessError
from quiesce.registry import canonical_text, freeze, parse_argument_text
from quiesce.registry._json import json_equal
from quiesce.registry._json_kinds import is_array, is_object

TEXTS: list[tuple[Any, str]] = [
    (None, "null"),
    (True, "true"),
    ({}, "{}"),
    ([], "[]"),
    ({"b": [1, {"a": None}], "a": "x"}, '{"b":[1,{"a":null}],"a":"x"}'),
    (1.0, "1"),
    (-3.0, "-3"),
    (0.1, "0.1"),
    (123456.789, "123456.789"),
    (1e-6, "0.000001"),
    (1.5e-5, "0.000015"),
    (1e-7, "1e-7"),
    (-1.25e-9, "-1.25e-9"),
    (1e16, "10000000000000000"),
    (1e20, "100000000000000000000"),
    (123456789012345680000.0, "123456789012345680000"),
    (1e21, "1e+21"),
    (1.5e300, "1.5e+300"),
    (5e-324, "5e-324"),
    (2**53 + 1, "9007199254740993"),
    (10**21, "1" + "0" * 21),
    ('"\\\b\f\n\r\t\x00\x1f', r'"\"\\\b\f\n\r\t\u0000\u001f"'),
    ("é€😀\x7f\x80\u2028", '"é€😀\x7f\x80\u2028"'),
    ("a\ud800b", r'"a\ud800b"'),
    ({"\udfff": "/"}, r'{"\udfff":"/"}'),
]


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=range(len(TEXTS)))
def test_each_value_has_one_text(value: Any, text: str) -> None:
    """Compact, non-ASCII raw, lone surrogates escaped, numbers as ECMAScript prints them; at any depth."""
    assert canonical_text(value) == text
    assert canonical_text(freeze(value)) == text
    assert canonical_text(nested(70, value)) == "[" * 70 + text + "]" * 70
    assert canonical_text(nested(70, value, key="k")) == '{"k":' * 70 + text + "}" * 70


def as_read(value: Any) -> Any:
    """What a reader of the text has: two halves of a pair are one character, a large integral float is its digits."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    if is_array(value):
        return [as_read(item) for item in value]
    if is_object(value):
        return {as_read(key): as_read(item) for key, item in value.items()}
    return int(canonical_text(value)) if type(value) is float and 2**53 <= abs(value) < 1e21 else value


@unhurried
@given(values)
def test_the_text_reads_back_as_the_same_json(value: Any) -> None:
    """Nothing is lost but the difference of ``1`` and ``1.0``, and the text can always be encoded."""
    text = canonical_text(value)
    text.encode()
    assert json_equal(json.loads(text), as_read(value))


@unhurried
@given(numbers)
def test_a_number_keeps_its_value(number: float) -> None:
    """The text of a number reads back as exactly that number, an int as int and a float as double."""
    assert type(number)(canonical_text(number)) == number


@pytest.mark.parametrize("sign", [1, -1])
def test_an_integer_of_any_size_is_written_exactly(sign: int) -> None:
    """Also those whose digits ``str`` refuses to write."""
    value = sign * (7 * 10**9000 + 12)
    text = ("" if sign > 0 else "-") + "7" + "0" * 8998 + "12"
    assert canonical_text(value) == text
    assert canonical_text({"a": [value]}) == f'{{"a":[{text}]}}'
    assert parse_argument_text(text) == value


@pytest.mark.parametrize("value", [math.nan, -math.inf, (), {1: 2}, [int], {"a": b""}], ids=repr)
def test_what_is_not_json_has_no_text(value: Any) -> None:
    """It is refused rather than written wrongly."""
    for wrapped in (value, nested(70, value)):
        with pytest.raises(NotLosslessError):
            canonical_text(wrapped)


def test_depth_is_no_limit_for_the_writer() -> None:
    """Fifty thousand levels are written without recursion."""
    assert canonical_text(nested(50_000)) == "[" * 50_000 + "1" + "]" * 50_000


SAME: list[tuple[Any, Any, bool]] = [
    (1, 1.0, True),
    (True, 1, False),
    (False, 0.0, False),
    ([1, {"a": 2.0}], [1.0, {"a": 2}], True),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
    ({"a": True}, {"a": 1}, False),
    ({"a": 1}, {"a": 1, "b": 2}, False),
    ([1], [1, 1], False),
    ([], {}, False),
    (None, False, False),
    ("1", 1, False),
    (2**53 + 1, float(2**53), False),
    (freeze({"a": [1]}), {"a": [1]}, True),
    ((1,), [1], False),
]


@pytest.mark.parametrize(("one", "other", "same"), SAME, ids=range(len(SAME)))
def test_equality_is_that_of_json(one: Any, other: Any, same: bool) -> None:
    """Numbers are equal by value, a boolean is never a number, the order of keys does not matter."""
    assert json_equal(one, other) is same
    assert json_equal(other, one) is same


@unhurried
@given(values, st.data())
def test_values_are_equal_exactly_when_their_sorted_texts_are(value: Any, data: st.DataObject) -> None:
    """Equality and canonical text agree on what is the same."""
    other = data.draw(values | st.just(json.loads(canonical_text(value))))

    def key(part: Any) -> str:
        if is_object(part):
            return "{" + ",".join(sorted(f"{canonical_text(name)}:{key(item)}" for name, item in part.items())) + "}"
        if is_array(part):
            return "[" + ",".join(map(key, part)) + "]"
        # One text for a number, however it is held.
        return str(int(part)) if type(part) is float and part.is_integer() else canonical_text(part)

    assert json_equal(value, other) == (key(value) == key(other))
