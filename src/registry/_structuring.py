"""From valid JSON arguments to what a function takes; strict: nothing is silently turned into something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ._canonical import canonical_text
from ._class_conversion import class_structurer
from ._content import OtherBlock, TextBlock, block_from_json
from ._json import FrozenDict, JsonValue, thaw
from ._json_kinds import is_array, is_object
from ._misfits import MisfitError, Violation, collect, refuse
from ._schema_check import SCALAR_CHECKS, same_scalar
from ._shapes import (
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
    bare,
)
from ._type_schema import schema_of
from ._validate import compile_validator

__all__ = ["Structure", "structurer"]

Structure: TypeAlias = Callable[[JsonValue], Any]

_MUST_BE: Final = {
    "null": "null",
    "boolean": "a boolean",
    "integer": "an integer",
    "number": "a finite JSON number",
    "string": "a string",
}


def structurer(shape: Shape) -> Structure:
    """How JSON becomes values of a shape.

    Args:
        shape: The declared shape.

    Returns:
        A function of frozen or plain JSON. It raises ``MisfitError`` where the value does not have the shape, and
        never keeps a frozen container: what a body gets is its own.
    """
    return _STRUCTURERS[type(shape)](shape)


def _scalar(scalar: Scalar) -> Structure:
    fits, kind = SCALAR_CHECKS[scalar.kind], scalar.kind

    def structure(value: Any) -> Any:
        if not fits(value):
            refuse(f"must be {_MUST_BE[kind]}")
        if kind == "integer":
            return int(value)
        if kind != "number" or scalar.mixed:
            return value
        try:
            return float(value)
        except OverflowError:
            refuse("must be a number that fits into a float")

    return structure


def _text(text: Text) -> Structure:
    def structure(value: JsonValue) -> object:
        if not isinstance(value, str):
            refuse(f"must be {text.what or 'a string'}")
        try:
            return text.read(value)
        except (ValueError, OverflowError):
            refuse(f"must be {text.what or 'a string'}")

    return structure


def _choice(choice: Choice) -> Structure:
    texts = [canonical_text(option.json) for option in choice.options]
    must = f"must be {texts[0]}" if len(texts) == 1 else f"must be one of [{','.join(texts)}]"

    def structure(value: JsonValue) -> object:
        found = next((option for option in choice.options if same_scalar(value, option.json)), None)
        if found is None:
            refuse(must)
        return found.member

    return structure


def _array(array: Array) -> Structure:
    item, build = structurer(array.item), array.build

    def structure(value: JsonValue) -> object:
        if not is_array(value):
            refuse("must be an array")
        items = collect([(f"[{index}]", item, each) for index, each in enumerate(value)])
        try:
            return items if build is list else build(items)
        except TypeError:
            refuse("must hold only items that can be in a set")

    return structure


def _fixed_array(fixed: FixedArray) -> Structure:
    items = [structurer(item) for item in fixed.items]

    def structure(value: JsonValue) -> object:
        if not is_array(value) or len(value) != len(items):
            refuse(f"must be an array of exactly {len(items)} item{'' if len(items) == 1 else 's'}")
        return tuple(collect([(f"[{index}]", items[index], each) for index, each in enumerate(value)]))

    return structure


def _dictionary(dictionary: Dictionary) -> Structure:
    key, item = structurer(dictionary.key), structurer(dictionary.value)

    def structure(value: JsonValue) -> object:
        if not is_object(value):
            refuse("must be an object")
        keys = collect([(f".{name}", key, name) for name in value])
        items = collect([(f".{name}", item, each) for name, each in value.items()])
        return dict(zip(keys, items, strict=True))

    return structure


def _record(record: Record) -> Structure:
    return _dict_record(record) if record.is_dict else _class_record(record)


def _dict_record(record: Record) -> Structure:
    hooks = {field.key: structurer(field.shape) for field in record.fields}

    def structure(value: JsonValue) -> object:
        entries = _checked_keys(record, value)
        items = collect([(f".{name}", hooks[name], each) for name, each in entries.items()])
        return dict(zip(entries, items, strict=True))

    return structure


def _class_record(record: Record) -> Structure:
    fields = [field for field in record.fields if field.is_input]
    hooks = {field.key: structurer(field.shape) for field in fields}
    convert = class_structurer(record.cls, hooks, [field.key for field in fields if field.required])
    return lambda value: convert(_checked_keys(record, value))


def _checked_keys(record: Record, value: JsonValue) -> dict[str, Any]:
    if not is_object(value):
        refuse("must be an object")
    keys = {field.key: field.required for field in record.fields if field.is_input}
    missing = [Violation(f".{key}", "", "missing required property ") for key in keys if keys[key] and key not in value]
    closed = "is not a declared property (additionalProperties: false)"
    extra = [Violation(f".{key}", closed) for key in value if key not in keys]
    if missing or extra:
        raise MisfitError(missing + extra)
    return value


def _block(shape: Block) -> Structure:
    cls = shape.cls

    def structure(value: JsonValue) -> object:
        if not is_object(value):
            refuse("must be an object")
        block = OtherBlock(FrozenDict(value)) if cls is OtherBlock else block_from_json(value)
        if not isinstance(block, cls):
            refuse(f"must be a content block of type {'text' if cls is TextBlock else 'image'}")
        return block

    return structure


def _alternatives(alternatives: Alternatives) -> Structure:
    members = alternatives.members
    if len(members) == 2 and Scalar("null") in members:  # noqa: PLR2004
        inner = structurer(members[1] if members[0] == Scalar("null") else members[0])
        return lambda value: None if value is None else inner(value)
    # The most specific first, so that an object that is a record does not become a dict; the rest as declared.
    ordered = sorted(members, key=lambda member: _generality(bare(member)))
    hooks = [(compile_validator(schema_of(member)), structurer(member)) for member in ordered]

    def structure(value: JsonValue) -> object:
        misfit: MisfitError | None = None
        for validate, hook in hooks:
            if not validate(value):
                try:
                    return hook(value)
                except MisfitError as error:
                    misfit = error
        raise misfit or MisfitError([Violation("", "must have one of the declared forms, as a whole")])

    return structure


def _generality(shape: Shape) -> int:
    match shape:
        case Choice() | Record() | FixedArray():
            return 0
        case Block(cls=cls):
            return 2 if cls is OtherBlock else 0
        case Dictionary():
            return 2
        case _:
            return 1


def _described(described: Described) -> Structure:
    return structurer(described.shape)


def _anything(_anything: Anything) -> Structure:
    return thaw


_STRUCTURERS: Final[dict[type, Callable[[Any], Structure]]] = {
    Described: _described,
    Anything: _anything,
    Scalar: _scalar,
    Text: _text,
    Choice: _choice,
    Array: _array,
    FixedArray: _fixed_array,
    Dictionary: _dictionary,
    Record: _record,
    Block: _block,
    Alternatives: _alternatives,
}
