"""Between JSON and the types that a tool's function declares, by cattrs.

The schema has been checked before. Structuring adds what the schema cannot say, and never coerces: a text stays a text.
"""

from __future__ import annotations

import datetime
import enum
import pathlib
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, cast, get_args

import cattrs

from ..errors import ToolArgsError
from ._json import FrozenDict, FrozenList, JsonValue, thaw
from ._schema_check import is_integer, is_number
from ._type_schema import Field, is_any, is_union, schema_of, strip
from ._validate import compile_validator

__all__ = ["structure_arguments", "unstructure_as"]


def _refuse(value: object, wanted: str) -> ValueError:
    return ValueError(f"must be {wanted}, not {value!r:.80}")


def _to_int(value: Any, _: object) -> int:
    if not is_integer(value):
        raise _refuse(value, "an integer")
    return int(value)


def _to_float(value: Any, _: object) -> float:
    if not is_number(value):
        raise _refuse(value, "a number")
    return float(value)


def _to_str(value: Any, _: object) -> str:
    if type(value) is not str:
        raise _refuse(value, "a text")
    return value


def _to_bool(value: Any, _: object) -> bool:
    if type(value) is not bool:
        raise _refuse(value, "true or false")
    return value


def _to_none(value: Any, _: object) -> None:
    if value is not None:
        raise _refuse(value, "null")


def _to_any(value: Any, _: object) -> Any:
    return thaw(value) if isinstance(value, FrozenDict | FrozenList) else value


def _from_text(read: Callable[[str], Any], wanted: str) -> Callable[[Any, object], Any]:
    def structure(value: Any, _: object) -> Any:
        try:
            return read(_to_str(value, None))
        except ValueError as error:
            raise _refuse(value, wanted) from error

    return structure


def _to_union(union: Any) -> Callable[[Any, object], Any]:
    """Structure as the one branch that the value fits."""
    branches = [(branch, compile_validator(schema_of(branch))) for branch in get_args(union)]

    def structure(value: Any, _: object) -> Any:
        for branch, validate in branches:
            if not validate(value):
                return _converter.structure(value, branch)
        raise _refuse(value, f"one of {', '.join(str(branch) for branch, _ in branches)}")

    return structure


def _to_enum(value: Any, kind: type[enum.Enum]) -> enum.Enum:
    return next((member for member in kind if member.value == value), None) or kind(value)


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter(unstruct_collection_overrides={tuple: list, set: _sorted, frozenset: _sorted})
    scalars: dict[type, Callable[[Any, object], Any]] = {
        int: _to_int,
        float: _to_float,
        str: _to_str,
        bool: _to_bool,
        type(None): _to_none,
    }
    for kind, hook in scalars.items():
        converter.register_structure_hook(kind, hook)
    converter.register_structure_hook_func(_is_enum, _to_enum)
    converter.register_structure_hook_func(lambda kind: is_any(strip(kind)[0]) or kind in (list, dict), _to_any)
    converter.register_structure_hook_factory(is_union, _to_union)
    texts: dict[type, tuple[Callable[[str], Any], str]] = {
        pathlib.Path: (pathlib.Path, "a path"),
        pathlib.PurePath: (pathlib.PurePath, "a path"),
        datetime.datetime: (datetime.datetime.fromisoformat, "a date and time such as 2026-12-01T09:30:00+00:00"),
        datetime.date: (datetime.date.fromisoformat, "a date such as 2026-12-01"),
        datetime.time: (datetime.time.fromisoformat, "a time such as 09:30:00"),
        uuid.UUID: (uuid.UUID, "a UUID"),
    }
    for kind, (read, wanted) in texts.items():
        converter.register_structure_hook(kind, _from_text(read, wanted))
        converter.register_unstructure_hook(
            kind,
            str if issubclass(kind, pathlib.PurePath | uuid.UUID) else kind.isoformat,  # type: ignore[attr-defined]
        )
    # What is declared as any JSON is not converted: the check that follows says what is wrong with it.
    converter.register_unstructure_hook_func(lambda kind: is_any(strip(kind)[0]), lambda value: value)
    return converter


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, enum.Enum)


def _sorted(values: Any) -> list[Any]:
    """A set in an order that does not change from run to run, where its members can be compared."""
    found = list(values)
    try:
        return sorted(found)
    except TypeError:
        return found


_converter: Final = _make_converter()


def structure_arguments(fields: Mapping[str, Field], arguments: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Turn valid arguments into what a function takes.

    Args:
        fields: The function's parameters by name; other arguments are left out.
        arguments: Frozen JSON.

    Returns:
        Keyword arguments; containers in them belong to the caller.

    Raises:
        ToolArgsError: A value is not what the annotation says, where the schema could not tell.
    """
    structured: dict[str, Any] = {}
    violations: list[str] = []
    for name, field in fields.items():
        if name not in arguments:
            continue
        try:
            structured[name] = _converter.structure(arguments[name], field.annotation)
        except Exception as error:  # noqa: BLE001 - cattrs raises what the hooks of any user's class raise
            violations += _violations(name, error)
    if violations:
        raise ToolArgsError.of(violations)
    return structured


def _violations(name: str, error: Exception) -> list[str]:
    found: list[str] = []
    for text in cattrs.transform_error(error, path="$", format_exception=_problem):
        problem, _, path = text.rpartition(" @ $")
        found.append(f'"{name}{path}" {problem}')
    return found


def _problem(error: BaseException, _: type | None) -> str:
    return f"is missing {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__


def unstructure_as(annotation: Any) -> Callable[[object], object] | None:
    """How a value of a declared type becomes JSON; ``None`` if it is declared as JSON already.

    A value that is not of its type passes unchanged, so that the check that follows names what is wrong.
    """
    bare, _ = strip(annotation)
    if is_any(bare) or bare in (None, type(None), bool, int, float, str, list, dict):
        return None

    def unstructure(value: object) -> object:
        try:
            return cast("object", _converter.unstructure(value, unstructure_as=annotation))
        except Exception:  # noqa: BLE001 - the value is not of its declared type; the check says so
            return value

    return unstructure
