"""From a Python annotation to JSON Schema in the enforced subset.

What the subset cannot say (the values of a mapping, the length of a tuple, the form of a date) is checked when the
arguments are structured. What cannot be said at all is refused, with the remedy.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import pathlib
import types
import typing
import uuid
from collections import abc
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NewType, Union, cast, get_args, get_origin

import attrs

from ._decisions import UNSET
from ._docstrings import docs_of
from ._json import JsonValue, is_json, snapshot

__all__ = ["Field", "UndescribableError", "fields_of", "is_any", "is_union", "schema_of", "strip"]

Schema = dict[str, Any]

SCALARS: Final[Mapping[object, str]] = {
    type(None): "null",
    None: "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
}
TEXTS: Final = (pathlib.Path, pathlib.PurePath, datetime.datetime, datetime.date, datetime.time, uuid.UUID)
ARRAYS: Final = (
    *(list, set, frozenset, tuple),
    *(abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection, abc.Set, abc.MutableSet),
)
OBJECTS: Final = (dict, abc.Mapping, abc.MutableMapping)


class UndescribableError(Exception):
    """An annotation has no schema; the message says which part, why, and what to write instead."""


@attrs.frozen
class Field:
    """One named part of an object.

    Attributes:
        name: As it is called in JSON.
        annotation: Its type.
        required: Whether it must be given.
        default: Its default, or ``UNSET``.
        description: For the model, or empty.
    """

    name: str
    annotation: Any
    required: bool
    default: object = UNSET
    description: str = ""

    def schema(self, inside: tuple[object, ...] = ()) -> Schema:
        """Its schema with the annotations ``description`` and ``default``."""
        node = schema_of(self.annotation, inside)
        description = self.description or node.get("description", "")
        extra: Schema = {"description": description} if description else {}
        if self.default is not UNSET:
            default = self.default.value if isinstance(self.default, enum.Enum) else self.default
            if is_json(default):
                extra["default"] = snapshot(default)
        return node | extra


def schema_of(annotation: Any, inside: tuple[object, ...] = ()) -> Schema:
    """The schema of an annotation.

    Args:
        annotation: A resolved annotation; no strings in it.
        inside: The classes that are being described, to find recursion.

    Raises:
        UndescribableError: The subset cannot express it.
    """
    bare, description = strip(annotation)
    node = _bare_schema(bare, inside)
    return {**node, "description": description} if description else node


def strip(annotation: Any) -> tuple[Any, str]:
    """Take off ``Annotated``, ``NewType`` and type aliases; returns the type, and the first text that came with it."""
    description = ""
    while True:
        if get_origin(annotation) is typing.Annotated:
            texts = [extra for extra in annotation.__metadata__ if isinstance(extra, str)]
            description = description or (texts[0] if texts else "")
            annotation = annotation.__origin__
        elif isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            return annotation, description


def is_any(annotation: Any) -> bool:
    """Whether an annotation stands for any JSON: ``Any``, ``object``, ``JsonValue``."""
    return annotation in (Any, object) or annotation in _json_aliases()


def is_union(annotation: Any) -> bool:
    """Whether an annotation is a union, however written."""
    return get_origin(annotation) in (Union, types.UnionType)


def _json_aliases() -> tuple[Any, ...]:
    def sample(value: JsonValue) -> None: ...

    resolved = typing.get_type_hints(sample, {**globals(), "JsonValue": JsonValue})["value"]
    return (JsonValue, resolved)


def _bare_schema(annotation: Any, inside: tuple[object, ...]) -> Schema:
    if is_any(annotation):
        return {}
    if _hashable_in(annotation, SCALARS):
        return {"type": SCALARS[annotation]}
    if is_union(annotation):
        return _union(annotation, inside)
    kind = get_origin(annotation) or annotation
    if kind is Literal:
        return _choice([member.value if isinstance(member, enum.Enum) else member for member in get_args(annotation)])
    if kind in ARRAYS:
        return _array(annotation, inside)
    if kind in OBJECTS:
        return _mapping(annotation, inside)
    return _class(kind, inside)


def _class(kind: Any, inside: tuple[object, ...]) -> Schema:
    if isinstance(kind, type):
        kind = cast("type[Any]", kind)
        if issubclass(kind, enum.Enum):
            return _choice([member.value for member in kind])
        if issubclass(kind, TEXTS):
            return {"type": "string"}
        if _is_record(kind):
            return _record(kind, inside)
    msg = f"{_name(kind)} has no JSON form; use builtin types, Literal, enums, TypedDict, dataclasses or attrs classes"
    raise UndescribableError(msg)


def _hashable_in(annotation: Any, table: Mapping[object, str]) -> bool:
    try:
        return annotation in table
    except TypeError:
        return False


def _choice(members: Sequence[object]) -> Schema:
    by_type: dict[str, list[object]] = {}
    for member in members:
        kind = SCALARS.get(type(member))
        if kind is None or not is_json(member):
            msg = f"the choice {member!r:.80} is no JSON text, number, boolean or null"
            raise UndescribableError(msg)
        by_type.setdefault("number" if kind == "integer" and "number" in by_type else kind, []).append(member)
    if not by_type:
        msg = "an enum without members can have no value"
        raise UndescribableError(msg)
    nodes = [{"type": "null"} if kind == "null" else {"type": kind, "enum": found} for kind, found in by_type.items()]
    return nodes[0] if len(nodes) == 1 else {"oneOf": nodes}


def _array(annotation: Any, inside: tuple[object, ...]) -> Schema:
    arguments = get_args(annotation)
    if get_origin(annotation) is tuple and arguments[1:] != (Ellipsis,):
        if arguments in ((), ((),)):
            return {"type": "array"}
        # The subset has no positions: each element is of one of the types, and structuring checks which and how many.
        arguments = (Union[arguments],)  # noqa: UP007 - built from a tuple
    if not arguments or is_any(arguments[0]) or isinstance(arguments[0], typing.TypeVar):
        return {"type": "array"}
    items = schema_of(arguments[0], inside)
    return {"type": "array", "items": items}


def _mapping(annotation: Any, inside: tuple[object, ...]) -> Schema:
    arguments = get_args(annotation)
    if arguments:
        if strip(arguments[0])[0] is not str:
            msg = f"{_name(annotation)} has keys that are not texts; JSON objects have text keys, so use dict[str, ...]"
            raise UndescribableError(msg)
        schema_of(arguments[1], inside)  # it is checked by structuring, and must have a form
    return {"type": "object", "additionalProperties": True}


def _union(annotation: Any, inside: tuple[object, ...]) -> Schema:
    nodes: list[Schema] = []
    for branch in get_args(annotation):
        node = schema_of(branch, inside)
        for part in node.get("oneOf", [node]):
            if part == {}:
                return {}
            if part not in nodes:
                nodes.append(part)
    nodes = _merged(nodes)
    if len(nodes) == 1:
        return nodes[0]
    for index, one in enumerate(nodes):
        for other in nodes[index + 1 :]:
            if not _exclusive(one, other):
                msg = (
                    f"in {_name(annotation)} one value can fit two branches, and a model must know which; give each "
                    "class a Literal field or a required field of its own, or annotate it as Any"
                )
                raise UndescribableError(msg)
    return {"oneOf": nodes}


def _merged(nodes: list[Schema]) -> list[Schema]:
    """Drop branches that another one covers: integers beside numbers, choices beside all values of their type."""
    whole = {node["type"] for node in nodes if node.keys() <= {"type", "description"}}
    kept = [node for node in nodes if "enum" not in node or node["type"] not in whole]
    if "number" in whole:
        kept = [node for node in kept if node["type"] != "integer"]
    return kept


def _exclusive(one: Schema, other: Schema) -> bool:
    """Whether no value fits both."""
    kinds = {one["type"], other["type"]}
    if len(kinds) > 1:
        return kinds != {"integer", "number"}
    if "enum" in one and "enum" in other:
        return not any(member in other["enum"] for member in one["enum"])
    if kinds != {"object"}:
        return False
    return _told_apart(one, other) or _lacks(one, other) or _lacks(other, one)


def _told_apart(one: Schema, other: Schema) -> bool:
    """Whether both require a property whose choices differ."""
    shared = set(one.get("required", ())) & set(other.get("required", ()))
    nodes = [(one["properties"][name], other["properties"][name]) for name in shared]
    return any("enum" in a and "enum" in b and not any(m in b["enum"] for m in a["enum"]) for a, b in nodes)


def _lacks(one: Schema, other: Schema) -> bool:
    """Whether ``one`` refuses a property that ``other`` requires."""
    closed = one.get("additionalProperties") is False
    return closed and any(name not in one.get("properties", {}) for name in other.get("required", ()))


def _is_record(kind: type) -> bool:
    return attrs.has(kind) or dataclasses.is_dataclass(kind) or typing.is_typeddict(cast("object", kind))


def _record(kind: type, inside: tuple[object, ...]) -> Schema:
    if kind in inside:
        msg = f"{_name(kind)} contains itself, which the schema subset cannot say; annotate the inner part as Any"
        raise UndescribableError(msg)
    fields = fields_of(kind)
    properties: Schema = {}
    for field in fields:
        try:
            properties[field.name] = field.schema((*inside, kind))
        except UndescribableError as error:
            msg = f"{_name(kind)}.{field.name}: {error}"
            raise UndescribableError(msg) from None
    node: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [field.name for field in fields if field.required]
    return node | ({"required": required} if required else {})


def fields_of(kind: type) -> list[Field]:
    """The fields of an attrs class, dataclass or TypedDict that JSON gives, in order.

    Raises:
        UndescribableError: Its annotations cannot be resolved.
    """
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except NameError as error:
        msg = f"the annotations of {_name(kind)} cannot be resolved ({error}); define what they name at module level"
        raise UndescribableError(msg) from error
    docs = docs_of(kind).parameters
    if typing.is_typeddict(kind):
        return [_typed_dict_field(kind, name, hint, docs.get(name, "")) for name, hint in hints.items()]
    if attrs.has(kind):
        return [
            Field(
                name=a.alias or a.name,
                annotation=hints.get(a.name, Any),
                required=a.default is attrs.NOTHING,
                default=_plain_default(cast("object", a.default)),
                description=docs.get(a.name, ""),
            )
            for a in attrs.fields(kind)
            if a.init
        ]
    return [
        Field(f.name, hints[f.name], _is_required(f), _dataclass_default(f), docs.get(f.name, ""))
        for f in dataclasses.fields(kind)
        if f.init
    ]


def _typed_dict_field(kind: type, name: str, hint: Any, description: str) -> Field:
    # __required_keys__ alone is wrong where annotations are strings: Required[...] was not seen when it was made.
    required = name in getattr(kind, "__required_keys__", ())
    while (qualifier := getattr(get_origin(hint), "_name", None)) in ("Required", "NotRequired", "ReadOnly"):
        required = {"Required": True, "NotRequired": False}.get(str(qualifier), required)
        (hint,) = get_args(hint)
    return Field(name, hint, required, description=description)


def _plain_default(default: object) -> object:
    # A factory's value is made anew each time, so there is none to show.
    return UNSET if default is attrs.NOTHING or hasattr(default, "takes_self") else default


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _dataclass_default(field: dataclasses.Field[Any]) -> object:
    return UNSET if field.default is dataclasses.MISSING else field.default


def _name(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)
