"""Arguments of tools whose parameters are somebody else's JSON Schema, checked by ``jsonschema`` in its own dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import jsonschema
import referencing
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import validator_for
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from ..errors import NotLosslessError, RegistrationError
from ._json import JsonValue, snapshot
from ._json_kinds import is_array, is_object
from ._place import Place, path_text, place_text

__all__ = ["compile_raw_validator"]

_ECHO: Final = 200
"""How many characters of a message or path are kept: both may hold parts of the value, which may be of any size."""
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


def compile_raw_validator(schema: Mapping[str, JsonValue]) -> Callable[[JsonValue], list[str]]:
    """Compile a schema of any dialect that ``jsonschema`` knows; 2020-12 if it names none.

    Args:
        schema: The schema of a tool's arguments; later changes to it have no effect. ``format`` is not enforced.

    Returns:
        A function from arguments to every violation, in the order of the schema; it never raises.

    Raises:
        RegistrationError: The schema is not valid under its dialect, cannot be met by an object, or refers to what it
            does not hold: references are never fetched. The message names the place.

    Source: ``docs/design.md`` section 4.
    """
    try:
        plain = cast("dict[str, Any]", snapshot(dict(schema)))
    except NotLosslessError as error:
        msg = f"parameters must be lossless JSON: {error}"
        raise RegistrationError(msg) from error
    dialect = _dialect(plain)
    try:
        dialect.check_schema(plain)
        # Without a registry of its own a validator would fetch remote schemas; an empty one holds the schema alone.
        validator = dialect(plain, registry=referencing.Registry[Any]())
        _check_references(plain, dialect)
    except SchemaError as error:
        place = path_text(error.absolute_path, "parameters")
        msg = f"{place} is not valid JSON Schema: {_cut(error.message)}"
        raise RegistrationError(msg) from error
    except RecursionError:
        msg = "parameters are nested too deeply for jsonschema to check them: flatten them with $defs"
        raise RegistrationError(msg) from None
    kinds = plain.get("type", "object")
    if "object" not in ([kinds] if isinstance(kinds, str) else kinds):
        msg = f'parameters.type must admit "object", which the arguments of a call are; it is {kinds!r:.200}'
        raise RegistrationError(msg)

    def validate(arguments: JsonValue) -> list[str]:
        if not is_object(arguments):
            return ['"arguments" must be an object']
        found: list[str] = []
        try:
            found.extend(_text(error) for error in validator.iter_errors(arguments))
        except RecursionError:
            found.append('"arguments" is nested too deeply to be checked')
        except (ArithmeticError, ValueError) as error:  # numbers too large for a division, or for a message
            found.append(f'"arguments" cannot be checked: {_cut(str(error))}')
        return found

    return validate


def _dialect(schema: dict[str, Any]) -> Any:
    name = schema.get("$schema", jsonschema.Draft202012Validator.META_SCHEMA["$id"])
    try:
        dialect = validator_for({"$schema": name}, default=cast("Any", None)) if isinstance(name, str) else None
    except ValueError:  # not even a URI
        dialect = None
    if dialect is None:
        msg = f"parameters.$schema names a dialect that jsonschema does not know: {name!r:.200}"
        raise RegistrationError(msg)
    return dialect


def _check_references(schema: dict[str, Any], dialect: Any) -> None:
    """Refuse a schema with a reference that leads out of it or nowhere."""
    specification: Any = specification_with(dialect.META_SCHEMA["$schema"])
    registry: Any = referencing.Registry[Any]()
    root = specification.create_resource(schema)
    pending: list[tuple[Any, Any]] = [(root, registry.resolver_with_root(root))]
    seen: set[int] = set()
    while pending:
        resource, resolver = pending.pop()
        node = resource.contents
        if not is_object(node) or id(node) in seen:
            continue
        seen.add(id(node))
        for key in _REFERENCES:
            if key not in node:
                continue
            try:
                resolved = resolver.lookup(node[key])
            except (Unresolvable, ValueError) as error:
                place = f"{_place_of(node, schema)}.{key}"
                msg = (
                    f"{place} refers to {node[key]!r:.200}, which is not in the schema: put it under $defs, "
                    "remote schemas are never fetched"
                )
                raise RegistrationError(msg) from error
            pending.append((specification.create_resource(resolved.contents), resolved.resolver))
        pending.extend((child, resolver.in_subresource(child)) for child in resource.subresources())


def _place_of(wanted: object, schema: object) -> str:
    """The path of a container inside a schema, which is found by identity."""
    pending: list[tuple[Any, Place]] = [(schema, None)]
    while True:
        node, place = pending.pop()
        if node is wanted:
            return place_text(place, "parameters")
        if is_object(node):
            pending.extend((item, (place, key)) for key, item in node.items())
        elif is_array(node):
            pending.extend((item, (place, index)) for index, item in enumerate(node))


def _text(error: ValidationError) -> str:
    """What is wrong, and where; of a choice also what is wrong in the branch that was followed farthest."""
    text = _own_text(error)
    closest = max(error.context or (), key=lambda inner: len(inner.absolute_path), default=None)
    return text if closest is None else f"{text} (closest: {_own_text(closest)})"


def _own_text(error: ValidationError) -> str:
    path = _cut(path_text(error.absolute_path)) or "arguments"
    # Most messages begin with the value.
    shown = repr(error.instance)
    if error.message.startswith(shown):
        return f'"{path}" {_cut(error.message.removeprefix(shown).strip())}'
    return f'"{path}": {_cut(error.message)}'


def _cut(text: str) -> str:
    return text if len(text) <= _ECHO else f"{text[:_ECHO]}... (+{len(text) - _ECHO} more characters)"
