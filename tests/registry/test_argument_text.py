"""How the argument text of a call is read, and how double encoding is undone."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from json_values import nested, texts, unhurried, values
from quiesce.registry import canonical_text, freeze, is_json, parse_argument_text, unwrap_double_encoded
from quiesce.registry._argument_text import DeepReader
from quiesce.registry._json import json_equal

JSON: list[tuple[str, Any]] = [
    ("", {}),
    ("{}", {}),
    (' \t\r\n{"a" : [1 , 2.5e1, true, false, null, "x"] } ', {"a": [1, 25.0, True, False, None, "x"]}),
    ('{"a":1,"b":2,"a":3}', {"a": 3, "b": 2}),
    ('"\\ud800\\ud83d\\ude00"', "\ud800😀"),
    ("0", 0),
    ("-1", -1),
    ("9007199254740993", 2**53 + 1),
    ('{"__proto__":{}}', {"__proto__": {}}),
]
NO_JSON = [
    *(
        " ",
        "{",
        "[1,]",
        "{'a':1}",
        '{"a":1,}',
        "[1 2]",
        '{"a" 1}',
        "{1:2}",
        "[,]",
        "01",
        "+1",
        "1.",
        ".5",
        "0x1",
        "1_0",
    ),
    *("nul", "True", "NaN", "[Infinity]", "-Infinity", '"a\nb"', '"\\x41"', "// c\n1", "\ufeff{}", "{}{}", "[]]", "]"),
    *("\u00a0{}", "\x00", "[1][", '{"a":[}', "-", "1e", '"'),
]


def read_deep(text: str) -> Any:
    """What the reader without recursion makes of a text; the text itself if it is not JSON."""
    try:
        return DeepReader(text).read()
    except ValueError:
        return text


@pytest.mark.parametrize(("text", "value"), JSON)
def test_json_is_read(text: str, value: Any) -> None:
    """The empty text is ``{}``; of a repeated key the last counts; integers keep every digit."""
    assert json_equal(parse_argument_text(text), value)
    if text:
        assert json_equal(read_deep(text), value)


@pytest.mark.parametrize("text", NO_JSON)
def test_anything_else_stays_the_text(text: str) -> None:
    """What is not JSON to the letter is never repaired, at any depth."""
    assert parse_argument_text(text) == text
    assert read_deep(text) == text


@pytest.mark.parametrize("text", ["-0", "-0.0", "-0e5", "-1e-999"])
def test_negative_zero_is_read_as_the_model_wrote_it(text: str) -> None:
    """So it fails as not lossless, and does not silently become 0."""
    read: list[Any] = [parse_argument_text(text), read_deep(text)]
    for value in read:
        assert value == 0
        assert math.copysign(1, value) == -1
        assert not is_json(value)


@pytest.mark.parametrize("text", ["1e999", "-1e999"])
def test_a_number_too_large_is_json_but_not_lossless(text: str) -> None:
    """It reads as infinity, which the lossless check refuses."""
    assert parse_argument_text(f"[{text}]") == [float(text)]
    assert not is_json(parse_argument_text(text))


@pytest.mark.parametrize("digits", [600, 601, 4300, 4301, 20_001])
@pytest.mark.parametrize("limit", [640, 4300])
def test_an_integer_of_any_size_is_exact(digits: int, limit: int) -> None:
    """The limit that the interpreter sets on reading digits does not apply."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(limit)
    try:
        assert parse_argument_text("-" + "9" * digits) == 1 - 10**digits
        assert parse_argument_text('{"a":[1' + "0" * digits + "]}") == {"a": [10**digits]}
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize("levels", [5_000, 20_000])
def test_depth_is_no_limit_for_the_reader(levels: int) -> None:
    """Arrays and objects are read at any depth, and a text that breaks off down there stays text."""
    text = "[" * levels + "1" + "]" * levels
    assert json_equal(parse_argument_text(text), nested(levels))
    assert parse_argument_text(text[:-1]) == text[:-1]
    text = '{"k":' * levels + "[]" + "}" * levels
    assert json_equal(parse_argument_text(text), nested(levels, [], key="k"))
    assert parse_argument_text(text + "}") == text + "}"


@unhurried
@given(values)
def test_what_was_written_is_read(value: Any) -> None:
    """Both readers give back a value from its text, however it was spaced and escaped."""
    for text in (json.dumps(value), json.dumps(value, indent=1), canonical_text(value)):
        assert json_equal(parse_argument_text(text), json.loads(text))
        assert json_equal(read_deep(text), json.loads(text))


@unhurried
@given(texts | st.text('{}[]",:0-1.eE \\utrue', max_size=12))
def test_both_readers_agree_on_any_text(text: str) -> None:
    """The reader without recursion accepts exactly what the standard library does."""
    assert repr(read_deep(text)) == repr(parse_argument_text(text) if text else text)


OBJECT: Any = {"type": "object", "properties": {}}
ARRAY: Any = {"type": "array"}
MANY: Any = {
    "type": "object",
    "properties": {
        "o": OBJECT,
        "l": ARRAY,
        "s": {"type": "string"},
        "any": {},
        "maybe": {"anyOf": [ARRAY, {"type": "null"}]},
        "either": {"oneOf": [ARRAY, {"type": "string"}]},
        "list": {"type": ["object", "null"]},
        "ref": {"$ref": "#/$defs/A"},
        "lost": {"$ref": "#/$defs/B"},
        "loop": {"$ref": "#/$defs/L"},
    },
    "$defs": {"A": OBJECT, "L": {"$ref": "#/$defs/L"}},
}


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({"o": '{"a":1}'}, {"o": {"a": 1}}),
        ({"l": " [1]"}, {"l": [1]}),
        ('{"l":"[1]"}', {"l": [1]}),
        ({"maybe": "[1]", "list": "{}", "ref": "{}"}, {"maybe": [1], "list": {}, "ref": {}}),
        ({"l": '["[1]"]'}, {"l": ["[1]"]}),
        ({"o": '"{}"'}, {"o": '"{}"'}),
        ({"o": "[1]", "l": "{}"}, {"o": "[1]", "l": "{}"}),
        ({"o": "{", "l": "x"}, {"o": "{", "l": "x"}),
        ({"s": '{"a":1}', "any": "[1]", "either": "[1]"}, {"s": '{"a":1}', "any": "[1]", "either": "[1]"}),
        ({"lost": "{}", "loop": "{}", "undeclared": "{}"}, {"lost": "{}", "loop": "{}", "undeclared": "{}"}),
        ({"o": {"a": "{}"}, "l": [1]}, {"o": {"a": "{}"}, "l": [1]}),
        ("[1]", "[1]"),
        ("no JSON", "no JSON"),
        (5, 5),
    ],
)
def test_one_level_of_double_encoding_is_undone_where_the_schema_wants_it(arguments: Any, wanted: Any) -> None:
    """At the root and its properties, for objects and arrays, and never where a string may stand."""
    before = canonical_text(arguments)
    assert json_equal(unwrap_double_encoded(MANY, arguments), wanted)
    assert json_equal(unwrap_double_encoded(MANY, freeze(arguments)), wanted)
    assert canonical_text(arguments) == before


def test_a_schema_that_says_nothing_changes_nothing() -> None:
    """Without ``type`` a string may be meant."""
    assert unwrap_double_encoded({}, '{"a":1}') == '{"a":1}'
    assert unwrap_double_encoded({"type": "object", "properties": {"a": True}}, {"a": "{}"}) == {"a": "{}"}
