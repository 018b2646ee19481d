"""From shapes to JSON Schema in the enforced subset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ._canonical import canonical_text
from ._content import ImageBlock, TextBlock
from ._json import is_json, snapshot
from ._shapes import (
    MISSING,
    Alternatives,
    Anything,
    Array,
    Block,
    Choice,
    Described,
    Dictionary,
    FixedArray,
    Record,
    Scalar,
    Shape,
    Text,
    UndescribableError,
    bare,
)
from ._union_schema import OverlapError, merge_alternatives
from ._unstructuring import unstructurer
from ._validate import compile_validator

__all__ = ["property_schema", "schema_of"]

Schema: TypeAlias = dict[str, Any]

_TEXT_BLOCK: Schema = {
    "type": "object",
    "properties": {"type": {"type": "string", "const": "text"}, "text": {"type": "string"}},
    "required": ["type", "text"],
    "additionalProperties": False,
}
_IMAGE_BLOCK: Schema = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "const": "image"},
        "mediaType": {"type": "string"},
        "data": {"type": "string", "description": "base64; either this or url"},
        "url": {"type": "string"},
    },
    "required": ["type"],
    "additionalProperties": False,
}
_ANY_OBJECT: Schema = {"type": "object", "additionalProperties": True}


def schema_of(shape: Shape, *, output: bool = False) -> Schema:
    """The schema of a shape.

    Args:
        shape: The shape.
        output: Whether it describes what a body returns rather than what it takes: all fields of a class are then
            present, the computed ones too, and overlapping objects in a union are described as any object.

    Returns:
        A new schema. Everything that the shape stands for is valid under it; not the other way round: the length of
        a fixed tuple, the values of a dict, and the form of a date or of one of several arrays are told in words,
        and checked when a value is structured.

    Raises:
        UndescribableError: Two members of a union can match the same object.
    """
    return _SCHEMAS[type(shape)](shape, output)


def property_schema(shape: Shape, description: str, default: object) -> Schema:
    """The schema of a parameter or field.

    Args:
        shape: Its shape; a description in it wins.
        description: What its docstring says; may be empty.
        default: Its default or ``MISSING``; written down if it has a valid JSON form.
    """
    schema = _member_schema(shape, description, output=False)
    if default is MISSING:
        return schema
    unstructure = unstructurer(shape)
    value = default if unstructure is None else unstructure(default)
    if not is_json(value) or compile_validator(schema)(value):
        return schema
    return {**schema, "default": snapshot(value)}


def _member_schema(shape: Shape, description: str, *, output: bool) -> Schema:
    schema = schema_of(shape, output=output)
    return schema if isinstance(shape, Described) else _with_description(schema, description, shape)


def _with_description(schema: Schema, text: str, shape: Shape) -> Schema:
    if not text:
        return schema
    note = _note(bare(shape))
    if note:
        stop = "." if text.endswith(".") else ""
        text = f"{text.removesuffix('.')} ({note}){stop}"
    return {**schema, "description": text}


def _noted(schema: Schema, shape: Shape) -> Schema:
    note = _note(shape)
    return {**schema, "description": note} if note else schema


def _note(shape: Shape) -> str:
    """What the schema subset cannot say of a shape, in words."""
    match shape:
        case Text(what=what):
            return what
        case FixedArray(items=()):
            return "always empty"
        case FixedArray(items=items):
            each = ", ".join(canonical_text(schema_of(item)) for item in items)
            return f"exactly {len(items)} item{'s' if len(items) > 1 else ''}, in order: {each}"
        case Dictionary(key=key, value=value):
            keys, values = schema_of(key), schema_of(value)
            parts = [f"each key: {canonical_text(keys)}"] if keys != {"type": "string"} else []
            parts += [f"each value: {canonical_text(values)}"] if values else []
            return "; ".join(parts)
        case _:
            return ""


def _described(described: Described, output: bool) -> Schema:
    inner = described.shape
    return _with_description(schema_of(inner, output=output), described.description, inner)


def _array(array: Array, output: bool) -> Schema:
    items = schema_of(array.item, output=output)
    return {"type": "array", "items": items} if items else {"type": "array"}


def _fixed_array(fixed: FixedArray, output: bool) -> Schema:
    schemas = [schema_of(item, output=output) for item in fixed.items]
    items = merge_alternatives(schemas, loosen=True) if schemas else {}
    return _noted({"type": "array", "items": items} if items else {"type": "array"}, fixed)


def _choice(choice: Choice, _output: bool) -> Schema:
    by_kind: dict[str, list[Any]] = {}
    for option in choice.options:
        by_kind.setdefault(option.kind, []).append(option.json)
    branches: list[Schema] = []
    for kind, values in by_kind.items():
        if kind == "null":
            branches.append({"type": "null"})
        elif len(values) == 1:
            branches.append({"type": kind, "const": values[0]})
        else:
            branches.append({"type": kind, "enum": values})
    schema = branches[0] if len(branches) == 1 else {"oneOf": branches}
    return {**schema, "description": choice.description} if choice.description else schema


def _record(record: Record, output: bool) -> Schema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for field in record.fields:
        if not output and not field.is_input:
            continue
        if output:
            properties[field.key] = _member_schema(field.shape, field.description, output=True)
        else:
            properties[field.key] = property_schema(field.shape, field.description, field.default)
        if field.required or (output and not record.is_dict):
            required.append(field.key)
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return {**schema, "description": record.description} if record.description else schema


def _block(block: Block, _output: bool) -> Schema:
    schemas = {TextBlock: _TEXT_BLOCK, ImageBlock: _IMAGE_BLOCK}
    return dict(schemas.get(block.cls, _ANY_OBJECT))


def _alternatives(alternatives: Alternatives, output: bool) -> Schema:
    members = alternatives.members
    if not output:
        _refuse_shared_values([choice for each in members if isinstance(choice := bare(each), Choice) and choice.cls])
    try:
        return merge_alternatives([schema_of(member, output=output) for member in members], loosen=output)
    except OverlapError:
        names = [each.cls.__name__ for member in members if isinstance(each := bare(member), Record)]
        problem = f"two members of the union ({', '.join(names)} or an array of one) can match the same object"
        remedy = "give one of them a required field that the other lacks, or both a Literal field with different values"
        raise UndescribableError(problem, remedy) from None


def _refuse_shared_values(enums: list[Choice]) -> None:
    seen: set[tuple[str, Any]] = set()
    for choice in enums:
        for option in choice.options:
            if (option.kind, option.json) in seen:
                problem = f"two enums of the union have the value {option.json!r}"
                raise UndescribableError(problem, "give every member of the union values of its own")
            seen.add((option.kind, option.json))


_SCHEMAS: Final[dict[type, Callable[[Any, bool], Schema]]] = {
    Described: _described,
    Anything: lambda _anything, _output: {},
    Scalar: lambda scalar, _output: {"type": scalar.kind},
    Text: lambda text, _output: _noted({"type": "string"}, text),
    Choice: _choice,
    Array: _array,
    FixedArray: _fixed_array,
    Dictionary: lambda dictionary, _output: _noted(_ANY_OBJECT, dictionary),
    Record: _record,
    Block: _block,
    Alternatives: _alternatives,
}
