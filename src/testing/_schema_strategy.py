"""A Hypothesis strategy for the values of a JSON Schema.

It aims: what it draws mostly fits the schema, and whoever uses it filters by the check that counts. Ours, since
``hypothesis-jsonschema`` 0.23 uses insides of Hypothesis that are gone by 6.170, and cannot draw from schemas that
refer to themselves.
"""

from __future__ import annotations

import datetime
import json
import operator
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import unquote

from ..registry import JsonValue, canonical_text

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["values_of_schema"]

Schema: TypeAlias = "Mapping[str, Any] | bool"

_MORE: Final = 4
"""How many more than the fewest items, keys or characters a schema without a bound gets."""
_KEYWORDS_OF: Final[dict[str, tuple[str, ...]]] = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_FORMATS_TOLD: Final = (
    ("ISO 8601 date and time", "date-time"),
    ("ISO 8601 date", "date"),
    ("ISO 8601 time", "time"),
)
_TOGETHER: Final = ("properties", "patternProperties")


def values_of_schema(schema: Schema) -> SearchStrategy[JsonValue]:
    """Values that mostly fit ``schema``.

    It reads ``type``, ``enum``, ``const``, ``oneOf``, ``anyOf``, ``allOf``, ``$ref`` within the schema (recursive ones
    too), the keywords of objects, arrays, strings and numbers, and common formats. It does not read ``not``, ``if``,
    ``contains``, ``propertyNames``, ``dependent...``, ``unevaluated...``, ``$dynamicRef``, anchors, and ``format``
    beside a ``pattern``.
    """
    return cast("SearchStrategy[JsonValue]", _Maker(schema).make(schema))


class _Maker:
    def __init__(self, root: Schema) -> None:
        from hypothesis import strategies  # noqa: PLC0415 - an extra

        self._st: Any = strategies
        self._root = root
        self._references: dict[str, Any] = {}
        st = self._st
        self._finite = st.floats(allow_nan=False, allow_infinity=False).map(_with_plain_zero)
        atoms = st.none() | st.booleans() | st.integers() | self._finite | st.text(max_size=_MORE)
        self._any = st.recursive(
            atoms,
            partial(_containers_of, st),
            max_leaves=6,
        )

    def make(self, schema: Schema) -> Any:
        st = self._st
        if isinstance(schema, bool):
            return self._any if schema else st.nothing()
        schema = _with_told(schema)
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(list(schema["enum"]))
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]))
        for key in ("allOf", "oneOf", "anyOf"):
            if key in schema:
                rest = {name: each for name, each in schema.items() if name != key}
                if key == "allOf":
                    return self.make(_merged(rest, *map(self._resolved, schema[key])))
                return st.one_of([self.make(_merged(rest, self._resolved(branch))) for branch in schema[key]])
        return st.one_of([self._of_type(kind, schema) for kind in _types(schema)])

    def _of_type(self, kind: str, schema: Mapping[str, Any]) -> Any:
        st = self._st
        makers: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": self._integer,
            "number": self._number,
        }
        if kind in makers:
            return makers[kind](schema)
        return {"null": st.none(), "boolean": st.booleans()}.get(kind, self._any)

    def _object(self, schema: Mapping[str, Any]) -> Any:
        st = self._st
        properties: Mapping[str, Schema] = schema.get("properties", {})
        patterns: Mapping[str, Schema] = schema.get("patternProperties", {})
        others: Schema = schema.get("additionalProperties", True)
        required = {name: self.make(properties.get(name, others)) for name in schema.get("required", ())}
        optional = {name: self.make(each) for name, each in properties.items() if name not in required}
        whole = st.fixed_dictionaries(required, optional=optional)
        fewest = schema.get("minProperties", 0)
        most = max(fewest, schema.get("maxProperties", fewest + _MORE)) - len(required)
        free = [(_text_like(st, pattern), each) for pattern, each in patterns.items()]
        # Beside named properties what else an open object may hold is left to the odd cases.
        if isinstance(others, Mapping) or (others and (not properties or fewest > len(properties))):
            names = self.make(schema["propertyNames"]) if "propertyNames" in schema else st.text(max_size=_MORE)
            free.append((names, others))
        for names, values in free:
            if most > 0:
                extras = st.dictionaries(names, self.make(values), max_size=most)
                whole = st.builds(_both, extras, whole)
        return whole

    def _array(self, schema: Mapping[str, Any]) -> Any:
        st = self._st
        first = [self.make(each) for each in schema.get("prefixItems", ())]
        fewest = max(0, schema.get("minItems", 0) - len(first))
        most = max(fewest, schema.get("maxItems", fewest + len(first) + _MORE) - len(first))
        unique = canonical_text if schema.get("uniqueItems") else None
        rest = st.lists(self.make(schema.get("items", True)), min_size=fewest, max_size=most, unique_by=unique)
        return rest if not first else st.builds(_one_list, st.tuples(*first), rest)

    def _string(self, schema: Mapping[str, Any]) -> Any:
        st = self._st
        if "pattern" in schema:
            return _text_like(st, schema["pattern"])
        formatted = _formatted(st, str(schema.get("format", "")))
        if formatted is not None:
            return formatted
        fewest = schema.get("minLength", 0)
        return st.text(min_size=fewest, max_size=schema.get("maxLength", fewest + 5 * _MORE))

    def _integer(self, schema: Mapping[str, Any]) -> Any:
        st = self._st
        low, high = _bounds(schema)
        step = schema.get("multipleOf", 1)
        if step != int(step):
            return self._any
        step = int(step)
        least = None if low is None else -(-low // step)
        return st.integers(None if least is None else int(least), None if high is None else int(high // step)).map(
            partial(operator.mul, step)
        )

    def _number(self, schema: Mapping[str, Any]) -> Any:
        low, high = _bounds(schema)
        whole = self._integer({**schema, "multipleOf": schema.get("multipleOf", 1)})
        if "multipleOf" in schema:
            return whole
        if low is None and high is None:
            return whole | self._finite
        floats = self._st.floats(low, high, allow_nan=False, allow_infinity=False).map(_with_plain_zero)
        return floats if low is not None and high is not None and high - low < 1 else whole | floats

    def _reference(self, reference: str) -> Any:
        if reference not in self._references:
            target = self._target(reference)
            # Deferred: it may refer to itself.
            self._references[reference] = self._st.deferred(lambda: self.make(target))
        return self._references[reference]

    def _resolved(self, schema: Schema) -> Schema:
        seen = 0
        while isinstance(schema, Mapping) and "$ref" in schema and seen < 10:  # noqa: PLR2004 - a chain, or a circle
            schema = _merged({k: v for k, v in schema.items() if k != "$ref"}, self._target(str(schema["$ref"])))
            seen += 1
        return schema

    def _target(self, reference: str) -> Schema:
        if not reference.startswith("#"):
            return True
        found: Any = self._root
        for part in unquote(reference[1:]).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(key) if isinstance(found, list) else key]
            except (KeyError, IndexError, ValueError, TypeError):
                return True  # refers to nothing; anything goes, and the filter decides
        return cast("Schema", found)


def _with_plain_zero(number: float) -> float:
    """-0.0 is not lossless JSON."""
    return number + 0.0


def _containers_of(st: Any, inner: Any) -> Any:
    return st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)


def _both(more: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    return {**more, **known}


def _one_list(head: tuple[Any, ...], tail: list[Any]) -> list[Any]:
    return [*head, *tail]


def _with_told(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """With keywords for what ``@tool`` can only tell in a description, as the enforced subset has none for it."""
    text = schema.get("description")
    if not isinstance(text, str):
        return schema
    told: dict[str, Any] = {}
    for phrase, name in _FORMATS_TOLD:
        if phrase in text and schema.get("type") == "string":
            told = {"format": name}
            break
    for phrase, keyword in (("each key: ", "propertyNames"), ("each value: ", "additionalProperties")):
        if phrase in text and schema.get("type") == "object":
            told[keyword] = next(iter(_schemas_in(text, phrase)), True)
    if "items, in order: " in text and schema.get("type") == "array":
        items = _schemas_in(text, "items, in order: ")
        told = {"prefixItems": items, "items": False, "minItems": len(items), "maxItems": len(items)}
    return {**schema, **told}


def _schemas_in(text: str, phrase: str) -> list[Any]:
    """The schemas that follow a phrase, separated by commas."""
    found: list[Any] = []
    place = text.index(phrase) + len(phrase)
    try:
        while True:
            schema, place = json.JSONDecoder().raw_decode(text, place)
            found.append(schema)
            if not text.startswith(", ", place):
                return found
            place += 2
    except json.JSONDecodeError:  # somebody's own words that read alike
        return found


def _types(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return [kinds]
    if isinstance(kinds, list):
        return list(cast("list[str]", kinds))
    # An object first: it shrinks towards the first.
    return [kind for kind, keywords in _KEYWORDS_OF.items() if not schema.keys().isdisjoint(keywords)] or ["any"]


def _merged(*schemas: Schema) -> Schema:
    whole: dict[str, Any] = {}
    for schema in schemas:
        if isinstance(schema, bool):
            if not schema:
                return False
            continue
        for key, each in schema.items():
            if key in _TOGETHER:
                whole[key] = {**whole.get(key, {}), **each}
            elif key == "required":
                whole[key] = list(dict.fromkeys([*whole.get(key, ()), *each]))
            else:
                whole[key] = each
    return whole


def _bounds(schema: Mapping[str, Any]) -> tuple[Any, Any]:
    # Draft 4 has exclusiveMinimum as a bool beside minimum; the filter knows.
    lows = [schema[key] for key in ("minimum", "exclusiveMinimum") if type(schema.get(key)) in (int, float)]
    highs = [schema[key] for key in ("maximum", "exclusiveMaximum") if type(schema.get(key)) in (int, float)]
    return max(lows, default=None), min(highs, default=None)


def _text_like(st: Any, pattern: str) -> Any:
    try:
        re.compile(pattern)
    except re.error:  # a pattern of another language's
        return st.text(max_size=_MORE)
    return st.from_regex(pattern)


def _formatted(st: Any, name: str) -> Any:
    """Texts of a format, or ``None``."""
    zoned = st.datetimes(timezones=st.just(datetime.UTC))
    known: dict[str, Callable[[], Any]] = {
        "date": lambda: st.dates().map(datetime.date.isoformat),
        "time": lambda: st.times().map(datetime.time.isoformat),
        "date-time": lambda: zoned.map(datetime.datetime.isoformat),
        "uuid": lambda: st.uuids().map(str),
        "email": st.emails,
        "ipv4": lambda: st.ip_addresses(v=4).map(str),
        "ipv6": lambda: st.ip_addresses(v=6).map(str),
        "uri": lambda: st.from_regex(r"https?://[a-z]{1,8}\.example(/[a-z]{0,5})?", fullmatch=True),
    }
    return known[name]() if name in known else None
