"""Validating values against a schema of the enforced subset, with the exact messages that models are shown.

A schema is compiled once into closures that answer yes or no, which is what a valid value costs. Only a value that is
not valid is walked again, by an interpreter that lists every violation in order.

Source: ``spec/behaviour.md`` B4.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Protocol

from ._canonical import canonical_text
from ._json import JsonValue, is_json
from ._json_kinds import is_array, is_frozen, is_object
from ._schema_check import SCALAR_CHECKS, is_integer, is_number, same_scalar

__all__ = ["Validator", "compile_validator"]

Fits = Callable[[Any], bool]
_BUDGET = 40
"""Levels of a schema that are compiled into nested closures; deeper ones are interpreted without recursion."""


class Validator(Protocol):
    """A compiled schema."""

    def __call__(self, value: object, path: str = "value") -> list[str]:
        """Every violation, in order; empty if the value is valid.

        Args:
            value: Anything.
            path: What the value is called in the messages; ``""`` for a tool's arguments.
        """


def compile_validator(schema: Mapping[str, JsonValue]) -> Validator:
    """Compile a schema that ``check_schema`` accepts. Later changes to it have no effect if it is frozen."""
    fits = _compile(schema, _BUDGET)

    def validate(value: object, path: str = "value") -> list[str]:
        if fits is not None and fits(value):
            return []
        return _interpret(schema, value, path)

    return validate


def _compile(schema: Mapping[str, Any], budget: int) -> Fits | None:
    """A closure that says whether a value fits; ``None`` where the schema is too deep for one."""
    if not budget:
        return None
    if "oneOf" in schema:
        branches = [_compile(branch, budget - 1) for branch in schema["oneOf"]]
        found = [fits for fits in branches if fits is not None]
        if len(found) < len(branches):
            return None
        return lambda value: sum(fits(value) for fits in found) == 1
    match schema.get("type"):
        case None:
            return _is_lossless
        case "object":
            return _compile_object(schema, budget)
        case "array":
            return _compile_array(schema, budget)
        case kind:
            return _compile_scalar(kind, schema)


def _is_lossless(value: object) -> bool:
    return is_frozen(value) or is_json(value)


def _compile_scalar(kind: str, schema: Mapping[str, Any]) -> Fits:
    fits = SCALAR_CHECKS[kind]
    if "enum" in schema:
        members = tuple(schema["enum"])
        return lambda value: fits(value) and any(same_scalar(member, value) for member in members)
    if "const" in schema:
        const = schema["const"]
        return lambda value: fits(value) and same_scalar(const, value)
    return fits


def _compile_array(schema: Mapping[str, Any], budget: int) -> Fits | None:
    if "items" not in schema:
        return lambda value: is_array(value) and _is_lossless(value)
    items = _compile(schema["items"], budget - 1)
    if items is None:
        return None
    # Elements that fit a schema are lossless, so the array is.
    return lambda value: is_array(value) and all(map(items, value))


def _compile_object(schema: Mapping[str, Any], budget: int) -> Fits | None:
    properties: dict[str, Fits] = {}
    for name, child in schema.get("properties", {}).items():
        fits = _compile(child, budget - 1)
        if fits is None:
            return None
        properties[name] = fits
    required = tuple(schema.get("required", ()))
    closed = schema.get("additionalProperties") is False

    def fits_object(value: Any) -> bool:
        if not is_object(value):
            return False
        for name in required:
            if name not in value:
                return False
        for name, item in value.items():
            fits = properties.get(name)
            if fits is not None:
                if not fits(item):
                    return False
            elif closed or type(name) is not str or not _is_lossless(item):
                return False
        return True

    return fits_object


_Walk = Generator[tuple[Mapping[str, Any], object, str], list[str], list[str]]


def _interpret(schema: Mapping[str, Any], value: object, path: str) -> list[str]:
    """Every violation: each node's generator yields its children and is sent their violations. No recursion."""
    stack = [_node(schema, value, path)]
    sent: list[str] | None = None
    while True:
        try:
            child = stack[-1].send(sent)  # type: ignore[arg-type]
        except StopIteration as done:
            stack.pop()
            sent = done.value
            if not stack:
                return sent  # type: ignore[return-value]
        else:
            stack.append(_node(*child))
            sent = None


def _node(schema: Mapping[str, Any], value: object, path: str) -> _Walk:
    shown = path or "arguments"
    if "oneOf" in schema:
        return (yield from _union(schema, value, path))
    match schema.get("type"):
        case None:
            return [] if _is_lossless(value) else [f'"{shown}" must be a lossless JSON value']
        case "object":
            return (yield from _object(schema, value, path))
        case "array":
            return (yield from _array(schema, value, path))
        case kind:
            return _scalar(schema, kind, value, shown)


def _union(schema: Mapping[str, Any], value: object, path: str) -> _Walk:
    matched = 0
    for branch in schema["oneOf"]:
        matched += not (yield branch, value, path)
    if matched == 1:
        return []
    return [f'"{path or "arguments"}" must match exactly one oneOf branch (matched {matched})']


def _object(schema: Mapping[str, Any], value: object, path: str) -> _Walk:
    shown = path or "arguments"
    if not is_object(value):
        return [f'"{shown}" must be an object']
    prefix = f"{path}." if path else ""
    properties: Mapping[str, Any] = schema.get("properties", {})
    found = [f'missing required property "{prefix}{name}"' for name in schema.get("required", ()) if name not in value]
    for name, child in properties.items():
        if name in value:
            found += yield child, value[name], f"{prefix}{name}"
    if schema.get("additionalProperties") is False:
        found += [
            f'"{prefix}{name}" is not a declared property (additionalProperties: false)'
            for name in value
            if name not in properties
        ]
    if not found and not _is_lossless(value):
        found.append(f'"{shown}" must be a lossless JSON object')
    return found


def _array(schema: Mapping[str, Any], value: object, path: str) -> _Walk:
    shown = path or "arguments"
    if not is_array(value):
        return [f'"{shown}" must be an array']
    found: list[str] = []
    if "items" in schema:
        for index, item in enumerate(value):
            found += yield schema["items"], item, f"{path}[{index}]"
    if not found and not _is_lossless(value):
        found.append(f'"{shown}" must be a dense lossless JSON array')
    return found


def _scalar(schema: Mapping[str, Any], kind: str, value: object, shown: str) -> list[str]:
    wrong = _wrong_kind(kind, value)
    if wrong is not None:
        return [f'"{shown}" must be {wrong}']
    if "enum" in schema and not any(same_scalar(member, value) for member in schema["enum"]):
        return [f'"{shown}" must be one of {canonical_text(list(schema["enum"]))}']
    if "const" in schema and not same_scalar(schema["const"], value):
        return [f'"{shown}" must be {canonical_text(schema["const"])}']
    return []


def _wrong_kind(kind: str, value: object) -> str | None:
    if kind == "number":
        if is_number(value):
            return None
        return "a finite JSON number" if type(value) is float else "a number"
    if kind == "integer":
        return None if is_integer(value) else "an integer"
    if SCALAR_CHECKS[kind](value):
        return None
    return "null" if kind == "null" else f"a {kind}"
