"""Hypothesis strategies for JSON values and schemas, and values of any depth."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

Schema = dict[str, Any]

unhurried = settings(deadline=None)
"""For properties whose single examples may take long on a busy machine."""

texts = st.text(st.characters(exclude_categories=()), max_size=8)
"""Any string, lone surrogates included."""
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: number != 0 or math.copysign(1, number) > 0
)
scalars = st.none() | st.booleans() | numbers | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
"""Lossless JSON."""

_foreign = st.sampled_from([math.nan, math.inf, -math.inf, -0.0, (), b"x", {1, 2}, object(), range(3)])
anything = st.recursive(
    scalars | _foreign,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts | st.integers(), inner, max_size=4),
    max_leaves=12,
)
"""Lossless JSON, and much that is not."""

_names = st.sampled_from("abc")
_few = {
    "string": st.sampled_from(["", "x", "é"]),
    "integer": st.sampled_from([0, 1, 2, 1.0]),
    "number": st.sampled_from([0, 1, 1.0, 1.5]),
    "boolean": st.booleans(),
    "null": st.none(),
}
few_values = st.recursive(
    st.one_of(*_few.values()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3),
    max_leaves=6,
)
"""Lossless JSON of few names and scalars, so that it often meets a schema of ``schemas``."""


@st.composite
def _scalar_schemas(draw: st.DrawFn) -> Schema:
    kind = draw(st.sampled_from(sorted(_few)))
    schema: Schema = {"type": kind}
    members = draw(st.lists(_few[kind], max_size=3))
    if members:
        schema["enum"] = members
    if draw(st.booleans()):
        schema["const"] = draw(st.sampled_from(members) if members else _few[kind])
    return schema


@st.composite
def _object_schemas(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    properties = draw(st.dictionaries(_names, inner, max_size=3))
    schema: Schema = {"type": "object", "properties": properties}
    if properties:
        schema["required"] = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    return schema | draw(st.sampled_from([{}, {"additionalProperties": False}, {"additionalProperties": True}]))


schemas: st.SearchStrategy[Schema] = st.recursive(
    _scalar_schemas() | st.just(dict[str, Any]()) | st.just({"type": "array"}) | st.just({"type": "object"}),
    lambda inner: (
        st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=2, max_size=3)})
        | _object_schemas(inner)
    ),
    max_leaves=8,
)
"""Schemas of the enforced subset."""
demanding_schemas: st.SearchStrategy[Schema] = _object_schemas(schemas).filter(
    lambda schema: bool(schema.get("required"))
)
"""Object schemas of the enforced subset that require something."""


@st.composite
def instances(draw: st.DrawFn, schema: Schema) -> Any:
    """A value that meets the schema in most cases (overlapping branches of ``oneOf`` are the others)."""
    if "oneOf" in schema:
        return draw(instances(draw(st.sampled_from(schema["oneOf"]))))
    match schema.get("type"):
        case "object":
            names: set[str] = set(schema.get("required", ())) | draw(st.sets(_names))
            properties: dict[str, Schema] = schema.get("properties", {})
            if schema.get("additionalProperties") is False:
                names &= properties.keys()
            return {name: draw(instances(properties.get(name, {}))) for name in sorted(names)}
        case "array":
            return draw(st.lists(instances(schema.get("items", {})), max_size=3))
        case None:
            return draw(few_values)
        case kind:
            return draw(st.sampled_from(schema["enum"])) if "enum" in schema else schema.get("const", draw(_few[kind]))


def nested(levels: int, bottom: Any = 1, *, key: str | None = None) -> Any:
    """A value ``levels`` deep: arrays, or objects of one ``key``."""
    value = bottom
    for _ in range(levels):
        value = [value] if key is None else {key: value}
    return value
