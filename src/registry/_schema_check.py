"""The enforced subset of JSON Schema: what a schema may say, since only that is checked.

Source: ``spec/behaviour.md`` B3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from ._json import JsonValue, is_json
from ._json_kinds import is_array, is_object
from ._json_walk import is_lossless_float
from ._place import Place, place_text

__all__ = [
    "ANNOTATIONS",
    "SCALAR_CHECKS",
    "check_object_schema",
    "check_schema",
    "is_integer",
    "is_number",
    "same_scalar",
]

ANNOTATIONS: Final = ("description", "title", "default", "examples")
_OF_KIND: Final = ("properties", "required", "additionalProperties", "items", "enum", "const")
_STRUCTURE: Final = frozenset({"type", "oneOf", *_OF_KIND})
_UNION: Final = frozenset({"oneOf"})
_KEYS_OF: Final = {
    "object": frozenset({"type", "properties", "required", "additionalProperties"}),
    "array": frozenset({"type", "items"}),
    **dict.fromkeys(("string", "number", "integer", "boolean", "null"), frozenset({"type", "enum", "const"})),
}
_SUBSET: Final = "(subset: type/oneOf/properties/required/additionalProperties/items/enum/const + annotations)"


def is_number(value: object) -> bool:
    """Whether a value is a finite JSON number."""
    return type(value) is int or (type(value) is float and is_lossless_float(value))


def is_integer(value: object) -> bool:
    """Whether a value is a JSON integer: a finite number without a fraction, so ``1.0`` is one and ``True`` is not."""
    return type(value) is int or (type(value) is float and value.is_integer() and is_lossless_float(value))


SCALAR_CHECKS: Final[dict[str, Callable[[object], bool]]] = {
    "string": lambda value: type(value) is str,
    "number": is_number,
    "integer": is_integer,
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
}


def same_scalar(one: object, other: object) -> bool:
    """Whether two scalars are the same JSON: ``1`` is ``1.0``, ``True`` is not ``1``."""
    return one == other and (type(one) is bool) == (type(other) is bool)


def check_schema(schema: object) -> list[str]:
    """Every violation of the subset, in walk order; empty if the schema is within it.

    Args:
        schema: A would-be schema of any depth; paths in the texts begin with ``schema``.
    """
    violations: list[str] = []
    open_nodes: set[int] = set()
    stack: list[tuple[int, Iterator[Visit]]] = []
    pending: Visit | None = (None, schema)
    while pending is not None or stack:
        if pending is not None:
            place, node = pending
            pending = None
            if not is_object(node):
                violations.append(f"{_path(place)} must be a schema object")
            elif id(node) in open_nodes:
                violations.append(f"{_path(place)} is circular")
            else:
                open_nodes.add(id(node))
                stack.append((id(node), _check_node(node, place, violations)))
        else:
            identity, visits = stack[-1]
            pending = next(visits, None)
            if pending is None:
                stack.pop()
                open_nodes.discard(identity)
    return violations


Visit: TypeAlias = "tuple[Place, object]"


def _path(place: Place) -> str:
    return place_text(place, "schema")


def check_object_schema(schema: object) -> list[str]:
    """Like ``check_schema``, and the root must be an object schema (B3.6)."""
    violations = check_schema(schema)
    if not violations and (not is_object(schema) or schema.get("type") != "object"):
        violations.append('schema.type must be "object" (structured output is object-rooted)')
    return violations


def _check_node(node: dict[str, Any], place: Place, violations: list[str]) -> Iterator[Visit]:
    """Check one node, yielding each child where its own violations belong in the order."""
    if not _STRUCTURE.issuperset(node):
        _check_keys(node, place, violations)
    if "oneOf" in node:
        if "type" in node:
            violations.append(f"{_path(place)} cannot declare both type and oneOf")
        else:
            yield from _check_union(node, place, violations)
        return
    if "type" not in node:
        violations.extend(f"{_path(place)}.{key} requires type or oneOf" for key in _OF_KIND if key in node)
        return
    kind = node["type"]
    if type(kind) is not str or kind not in _KEYS_OF:
        lists = is_array(kind)
        problem = "a single type string (type arrays are not supported)" if lists else f"one of {'/'.join(_KEYS_OF)}"
        violations.append(f"{_path(place)}.type must be {problem}")
        return
    if not _KEYS_OF[kind].issuperset(node):
        misplaced = (key for key in _OF_KIND if key in node and key not in _KEYS_OF[kind])
        violations.extend(f'{_path(place)}.{key} is not supported on type "{kind}"' for key in misplaced)
    if kind == "object":
        yield from _check_object(node, place, violations)
    elif kind == "array":
        if "items" in node:
            yield (place, "items"), node["items"]
    else:
        _check_scalar(node, kind, place, violations)


def _check_keys(node: dict[str, Any], place: Place, violations: list[str]) -> None:
    for key, value in node.items():
        if key in ANNOTATIONS:
            if not is_json(value):
                violations.append(f"{_path(place)}.{key} annotation must be lossless JSON data")
        elif key not in _STRUCTURE:
            violations.append(f"{_path(place)}.{key} is not a supported keyword {_SUBSET}")
    wrong = (key for key in ("description", "title") if key in node and type(node[key]) is not str)
    violations.extend(f"{_path(place)}.{key} must be a string" for key in wrong)


def _check_union(node: dict[str, Any], place: Place, violations: list[str]) -> Iterator[Visit]:
    branches = node["oneOf"]
    if not is_array(branches) or len(branches) < 2:  # noqa: PLR2004 - a choice needs two branches
        violations.append(f"{_path(place)}.oneOf must be an array of at least two schemas")
    else:
        around = (place, "oneOf")
        for index, branch in enumerate(branches):
            yield (around, index), branch
    if not _UNION.issuperset(node):
        violations.extend(f"{_path(place)}.{key} is not supported beside oneOf" for key in _OF_KIND if key in node)


def _check_object(node: dict[str, Any], place: Place, violations: list[str]) -> Iterator[Visit]:
    properties = node.get("properties", {})
    if is_object(properties) and all(type(name) is str for name in properties):
        around = (place, "properties")
        for name, child in properties.items():
            yield (around, name), child
    else:
        violations.append(f"{_path(place)}.properties must be an object of schemas")
    if "required" in node:
        required = node["required"]
        if not is_array(required) or any(type(name) is not str for name in required):
            violations.append(f"{_path(place)}.required must be an array of strings")
        else:
            known = properties if is_object(properties) else {}
            violations.extend(
                f'{_path(place)}.required names "{name}" which is not in properties'
                for name in required
                if name not in known
            )
    if "additionalProperties" in node and type(node["additionalProperties"]) is not bool:
        violations.append(f"{_path(place)}.additionalProperties must be a boolean")


def _check_scalar(node: dict[str, Any], kind: str, place: Place, violations: list[str]) -> None:
    fits = SCALAR_CHECKS[kind]
    before = len(violations)
    if "enum" in node:
        members: JsonValue = node["enum"]
        if not is_array(members) or not members or not all(fits(member) for member in members):
            violations.append(f"{_path(place)}.enum must be a non-empty array of {kind} values")
    if "const" in node and not fits(node["const"]):
        violations.append(f"{_path(place)}.const must be a {kind} value")
    both = "enum" in node and "const" in node and len(violations) == before
    if both and not any(same_scalar(member, node["const"]) for member in node["enum"]):
        violations.append(f"{_path(place)}.const must be one of {_path(place)}.enum when both are declared")
