"""Schemas of unions: ``oneOf`` means exactly one, so branches that can both match are merged or refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from ._schema_check import same_scalar
from ._validate import compile_validator

__all__ = ["OverlapError", "are_disjoint", "merge_alternatives"]

Schema: TypeAlias = dict[str, Any]


class OverlapError(Exception):
    """Two branches can match the same object, and no schema says what both together allow."""


def merge_alternatives(schemas: Iterable[Schema], *, loosen: bool = False) -> Schema:
    """One schema for values of any of several, with every ``oneOf`` in it exclusive.

    Args:
        schemas: At least one; made of the keywords that ``schema_of`` uses.
        loosen: Describe overlapping objects as any object rather than refuse them.

    Returns:
        A schema that accepts all that one of ``schemas`` accepts. It accepts more where arrays, or objects with
        ``loosen``, were merged: whoever reads such a value has to check it again.

    Raises:
        OverlapError: Two objects overlap.
    """
    branches: list[Schema] = []
    for schema in schemas:
        for branch in schema.get("oneOf", [schema]):
            _add(branches, branch, loosen)
    return branches[0] if len(branches) == 1 else {"oneOf": branches}


def are_disjoint(one: Schema, other: Schema) -> bool:
    """Whether it is certain that no value is valid under both."""
    if "oneOf" in one or "oneOf" in other:
        pairs = ((a, b) for a in one.get("oneOf", [one]) for b in other.get("oneOf", [other]))
        return all(are_disjoint(a, b) for a, b in pairs)
    kinds = one.get("type"), other.get("type")
    if None in kinds:
        return False
    if kinds == ("object", "object"):
        return _parted(one, other) or _parted(other, one)
    if kinds[0] != kinds[1] and set(kinds) != {"integer", "number"}:
        return True
    for finite, against in ((one, other), (other, one)):
        if (values := _values(finite)) is not None:
            return not any(_accepts(against, value) for value in values)
    return False


def _parted(one: Schema, other: Schema) -> bool:
    """Whether a property that ``one`` requires keeps its objects out of ``other``."""
    mine: dict[str, Schema] = one.get("properties", {})
    others: dict[str, Schema] = other.get("properties", {})
    for name in one.get("required", ()):
        if name in others and are_disjoint(mine[name], others[name]):
            return True
        if name not in others and other.get("additionalProperties") is False:
            return True
    return False


def _add(branches: list[Schema], branch: Schema, loosen: bool) -> None:
    for index, other in enumerate(branches):
        if not are_disjoint(other, branch):
            # What is merged may overlap more of them than its parts did.
            again = [_merge(other, branch, loosen), *branches[index + 1 :]]
            del branches[index:]
            for each in again:
                _add(branches, each, loosen)
            return
    branches.append(branch)


def _merge(one: Schema, other: Schema, loosen: bool) -> Schema:
    if "type" not in one or "type" not in other:
        return {}
    if one["type"] == "array":
        items = merge_alternatives([one.get("items", {}), other.get("items", {})], loosen=loosen)
        return {"type": "array", "items": items} if items else {"type": "array"}
    if one["type"] == "object":
        return _merge_objects(one, other, loosen)
    return _merge_scalars(one, other)


def _merge_objects(one: Schema, other: Schema, loosen: bool) -> Schema:
    for schema in (one, other):
        if "properties" not in schema and schema.get("additionalProperties") is not False:
            return schema
    if loosen:
        return {"type": "object", "additionalProperties": True}
    raise OverlapError


def _merge_scalars(one: Schema, other: Schema) -> Schema:
    values, others = _values(one), _values(other)
    if values is not None and all(_accepts(other, value) for value in values):
        return other
    if others is not None and all(_accepts(one, value) for value in others):
        return one
    kind = one["type"] if one["type"] == other["type"] else "number"
    if values is not None and others is not None:
        return {"type": kind, "enum": values + [each for each in others if not _accepts(one, each)]}
    descriptions = dict.fromkeys(schema.get("description") for schema in (one, other))
    if None in descriptions:
        return {"type": kind}
    return {"type": kind, "description": " or ".join(text for text in descriptions if text)}


def _values(schema: Schema) -> list[Any] | None:
    """The values that a scalar schema allows, or ``None`` if they are too many to list."""
    if "const" in schema:
        return [schema["const"]]
    if schema["type"] == "null":
        return [None]
    if schema["type"] == "boolean" and "enum" not in schema:
        return [False, True]
    return schema.get("enum")


def _accepts(schema: Schema, value: Any) -> bool:
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if values is not None:
        return any(same_scalar(value, each) for each in values)
    return not compile_validator(schema)(value)
