"""Validating values against a schema of the enforced subset, with the exact messages that models are shown.

A schema is compiled once into closures that answer yes or no, which is all that a valid value costs. Only where they
say no, or the schema is too deep for them, does an interpreter without recursion list every violation in order.

A value that fits its schema is lossless: its scalars are checked to be, and what no schema node describes (a value of
any type, an undeclared key, an element without ``items``) is checked by ``is_json``, which also finds the cycles.

Source: ``spec/behaviour.md`` B4.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Set
from typing import Any, Final, Protocol, TypeAlias, cast

from ..errors import JsonSchemaError
from ._canonical import canonical_text
from ._json import FrozenDict, FrozenList, JsonValue, freeze, is_json
from ._json_kinds import is_array, is_object
from ._place import Place, place_text
from ._schema_check import SCALAR_CHECKS, same_scalar

__all__ = ["Validator", "compile_validator"]

_Fits: TypeAlias = Callable[[Any], bool]
_LEVELS: Final = 40
"""Levels of a schema that become nested closures; a deeper schema is only interpreted."""


class Validator(Protocol):
    """A compiled schema."""

    def __call__(self, value: object, path: str = "value") -> list[str]:
        """Every violation, in order; empty if the value is valid.

        Args:
            value: Anything, of any depth.
            path: What the value is called in the messages; ``""`` for a tool's arguments.
        """
        ...


class _TooDeepError(Exception):
    """The schema has more than ``_LEVELS`` levels."""


def compile_validator(schema: Mapping[str, JsonValue]) -> Validator:
    """Compile a schema.

    Args:
        schema: One that ``check_schema`` accepts; later changes to it have no effect.

    Returns:
        The validator; it never raises.

    Raises:
        JsonSchemaError: It states a type that there is not, so nobody has checked it.
    """
    frozen: Any = freeze(schema)
    fits: _Fits | None
    try:
        fits = _compile(frozen, _LEVELS)
    except (_TooDeepError, RecursionError):
        fits = None

    def validate(value: object, path: str = "value") -> list[str]:
        try:
            if fits is not None and fits(value):
                return []
        except RecursionError:
            pass  # the caller is near the limit: interpret
        return _Interpreter(path).run(frozen, value)

    return validate


def _compile(schema: Mapping[str, Any], levels: int) -> _Fits:
    """A closure that says whether a value fits."""
    if not levels:
        raise _TooDeepError
    if "oneOf" in schema:
        branches = [_compile(branch, levels - 1) for branch in schema["oneOf"]]
        return lambda value: sum(fits(value) for fits in branches) == 1
    match schema.get("type"):
        case None:
            return is_json
        case "object":
            return _compile_object(schema, levels - 1)
        case "array":
            return _compile_array(schema, levels - 1)
        case kind:
            return _compile_scalar(kind, schema)


def _compile_scalar(kind: str, schema: Mapping[str, Any]) -> _Fits:
    if kind not in SCALAR_CHECKS:
        raise JsonSchemaError([f"{kind!r} is not a type; check_schema tells where it stands"])
    fits = SCALAR_CHECKS[kind]
    if "enum" not in schema and "const" not in schema:
        return fits
    # With both, the constant is one of the enum's members.
    allowed = [schema["const"]] if "const" in schema else schema["enum"]
    if kind == "string":
        members = frozenset(allowed)
        return lambda value: fits(value) and value in members
    return lambda value: fits(value) and any(same_scalar(member, value) for member in allowed)


def _compile_array(schema: Mapping[str, Any], levels: int) -> _Fits:
    if "items" not in schema:
        return lambda value: is_array(value) and is_json(value)
    exact, fits = _exact_types(schema["items"]), _compile(schema["items"], levels)

    def fits_array(value: object) -> bool:
        if not is_array(value):
            return False
        for item in value:  # noqa: SIM110 - half the time of all()
            if type(item) not in exact and not fits(item):
                return False
        return True

    return fits_array


_EXACT_TYPES: Final[dict[str | None, frozenset[type]]] = {
    None: frozenset({bool, int, str, type(None), FrozenDict, FrozenList}),
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int}),
    "boolean": frozenset({bool}),
    "null": frozenset({type(None)}),
}


def _exact_types(schema: Mapping[str, Any]) -> Set[type]:
    """Types whose values all fit the schema: looking there first saves most calls of closures."""
    if not schema.keys().isdisjoint(("oneOf", "enum", "const")):
        return frozenset()
    return _EXACT_TYPES.get(schema.get("type"), frozenset())


def _compile_object(schema: Mapping[str, Any], levels: int) -> _Fits:
    properties: dict[str, tuple[Set[type], _Fits]] = {
        name: (_exact_types(child), _compile(child, levels)) for name, child in schema.get("properties", {}).items()
    }
    required = tuple(schema.get("required", ()))
    undeclared: tuple[Set[type], _Fits] = (_EXACT_TYPES[None], is_json)
    if schema.get("additionalProperties") is False:
        undeclared = (frozenset(), lambda _: False)

    def fits_object(value: object) -> bool:
        if not is_object(value):
            return False
        for name in required:
            if name not in value:
                return False
        for name, item in value.items():
            exact, fits = properties.get(name, undeclared)
            if type(name) is not str or (type(item) not in exact and not fits(item)):
                return False
        return True

    return fits_object


_Child: TypeAlias = tuple[Mapping[str, Any], Any, Place]
_Walk: TypeAlias = Generator[_Child, list[str], list[str]]
"""Validates one node: yields each child, is sent its violations, and returns them all."""


class _Interpreter:
    """Lists every violation, without recursion.

    Args:
        root: What the value is called in the messages.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def run(self, schema: Mapping[str, Any], value: object) -> list[str]:
        stack = [self._node(schema, value, None)]
        sent: list[str] | None = None
        while True:
            try:
                child = next(stack[-1]) if sent is None else stack[-1].send(sent)
            except StopIteration as done:
                stack.pop()
                sent = cast("list[str]", done.value)
                if not stack:
                    return sent
            else:
                stack.append(self._node(*child))
                sent = None

    def _path(self, place: Place) -> str:
        return place_text(place, self._root)

    def _says(self, place: Place, problem: str) -> str:
        return f'"{self._path(place) or "arguments"}" {problem}'

    def _node(self, schema: Mapping[str, Any], value: Any, place: Place) -> _Walk:
        if "oneOf" in schema:
            return (yield from self._union(schema, value, place))
        match schema.get("type"):
            case None:
                problem = None if is_json(value) else "must be a lossless JSON value"
            case "object":
                return (yield from self._object(schema, value, place))
            case "array":
                return (yield from self._array(schema, value, place))
            case kind:
                problem = _scalar_problem(kind, schema, value)
        return [] if problem is None else [self._says(place, problem)]

    def _union(self, schema: Mapping[str, Any], value: object, place: Place) -> _Walk:
        matched = 0
        for branch in schema["oneOf"]:
            matched += not (yield branch, value, place)
        return [] if matched == 1 else [self._says(place, f"must match exactly one oneOf branch (matched {matched})")]

    def _object(self, schema: Mapping[str, Any], value: object, place: Place) -> _Walk:
        if not is_object(value):
            return [self._says(place, "must be an object")]
        properties: Mapping[str, Any] = schema.get("properties", {})
        found = [
            f'missing required property "{self._path((place, name))}"'
            for name in schema.get("required", ())
            if name not in value
        ]
        for name, child in properties.items():
            if name in value:
                found += yield child, value[name], (place, name)
        undeclared = {name: item for name, item in value.items() if name not in properties}
        if schema.get("additionalProperties") is False:
            problem = "is not a declared property (additionalProperties: false)"
            found += [self._says((place, str(name)), problem) for name in undeclared]
        if not found and not (is_json(undeclared) and all(type(name) is str for name in value)):
            found.append(self._says(place, "must be a lossless JSON object"))
        return found

    def _array(self, schema: Mapping[str, Any], value: object, place: Place) -> _Walk:
        if not is_array(value):
            return [self._says(place, "must be an array")]
        if "items" not in schema:
            return [] if is_json(value) else [self._says(place, "must be a dense lossless JSON array")]
        found: list[str] = []
        for index, item in enumerate(value):
            found += yield schema["items"], item, (place, index)
        return found


def _scalar_problem(kind: str, schema: Mapping[str, Any], value: object) -> str | None:
    if not SCALAR_CHECKS[kind](value):
        if kind == "number":
            return "must be a finite JSON number" if type(value) is float else "must be a number"
        return f"must be {_NAMES[kind]}"
    if "enum" in schema and not any(same_scalar(member, value) for member in schema["enum"]):
        return f"must be one of {canonical_text(schema['enum'])}"
    if "const" in schema and not same_scalar(schema["const"], value):
        return f"must be {canonical_text(schema['const'])}"
    return None


_NAMES: Final = {"string": "a string", "integer": "an integer", "boolean": "a boolean", "null": "null"}
