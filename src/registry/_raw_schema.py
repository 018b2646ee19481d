"""Arguments of tools whose parameters are somebody else's JSON Schema, checked by ``jsonschema`` in its own dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import jsonschema
import jsonschema.exceptions
import referencing
import referencing.exceptions
from jsonschema.validators import validator_for

from ..errors import RegistrationError
from ._json import FrozenDict, FrozenList, JsonValue, thaw

__all__ = ["compile_raw_validator"]

_ECHO = 200


def compile_raw_validator(schema: Mapping[str, JsonValue]) -> Callable[[JsonValue], list[str]]:
    """Compile a schema of any dialect that ``jsonschema`` knows; 2020-12 if it names none.

    Returns:
        A function from arguments to every violation, in the order of their places.

    Raises:
        RegistrationError: The schema is not valid under its dialect, or refers to another document: references are
            never fetched.
    """
    plain = thaw(dict(schema))
    dialect: Any = validator_for(plain, default=jsonschema.Draft202012Validator)
    try:
        dialect.check_schema(plain)
    except jsonschema.exceptions.SchemaError as error:
        msg = f"parameters{_pointer(error.absolute_path)} is not valid JSON Schema: {_cut(error.message)}"
        raise RegistrationError(msg) from error
    _refuse_remote(plain)
    # An empty registry retrieves nothing: what is not in the schema itself cannot be reached.
    validator = dialect(plain, registry=referencing.Registry(), format_checker=None)

    def validate(arguments: JsonValue) -> list[str]:
        if not isinstance(arguments, dict):
            return ['"arguments" must be an object']
        value = thaw(arguments) if isinstance(arguments, FrozenDict | FrozenList) else arguments
        try:
            errors = sorted(validator.iter_errors(value), key=lambda error: [str(part) for part in error.absolute_path])
        except RecursionError:
            return ['"arguments" is nested too deeply for the schema to be checked']
        except referencing.exceptions.Unresolvable as error:
            return [
                f'"arguments" cannot be checked: the schema refers to {_cut(str(error.ref))}, which it does not hold'
            ]
        return [f'"{_dotted(error.absolute_path)}" {_problem(error)}' for error in errors]

    return validate


def _refuse_remote(schema: JsonValue) -> None:
    stack: list[tuple[JsonValue, str]] = [(schema, "parameters")]
    while stack:
        node, path = stack.pop()
        if isinstance(node, dict):
            for key, value in cast("dict[str, JsonValue]", node).items():
                if key in ("$ref", "$dynamicRef") and isinstance(value, str) and not value.startswith("#"):
                    msg = (
                        f"{path}.{key} refers to {value!r:.200}: inline it under $defs, remote schemas are not fetched"
                    )
                    raise RegistrationError(msg)
                stack.append((value, f"{path}.{key}"))
        elif isinstance(node, list):
            stack.extend((value, f"{path}[{index}]") for index, value in enumerate(cast("list[JsonValue]", node)))


def _problem(error: Any) -> str:
    """The message without the value that ``jsonschema`` echoes, which may be of any size."""
    shown = repr(error.instance)
    text = str(error.message)
    return _cut(text.removeprefix(shown).strip() if text.startswith(shown) else text)


def _cut(text: str) -> str:
    return text if len(text) <= _ECHO else f"{text[:_ECHO]}... (+{len(text) - _ECHO} more characters)"


def _dotted(path: Any) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "arguments"


def _pointer(path: Any) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
