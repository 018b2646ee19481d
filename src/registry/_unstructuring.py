"""From Python objects to JSON, as the declared type says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from ._canonical import canonical_text
from ._class_conversion import class_unstructurer
from ._content import block_to_json
from ._json import is_json
from ._shapes import Alternatives, Array, Block, Choice, Described, Dictionary, FixedArray, Record, Shape, Text, bare

__all__ = ["Unstructure", "unstructurer"]

Unstructure: TypeAlias = Callable[[Any], Any]


def unstructurer(shape: Shape) -> Unstructure | None:
    """How values of a shape become JSON.

    Args:
        shape: The declared shape.

    Returns:
        A function that never raises for want of the right type: what does not have the declared type stays as it is,
        for the check of the result to find and name. ``None`` if nothing ever changes.
    """
    make = _UNSTRUCTURERS.get(type(shape))
    return None if make is None else make(shape)


def _text(text: Text) -> Unstructure:
    return lambda value: text.write(value) if _has_type(text, value) else value


def _choice(choice: Choice) -> Unstructure | None:
    if all(option.json is option.member for option in choice.options):
        return None
    members = {id(option.member): option.json for option in choice.options}
    return lambda value: members.get(id(value), value)


def _array(array: Array) -> Unstructure | None:
    item, accepts = unstructurer(array.item), array.accepts
    if item is None and accepts == (list,):
        return None

    def unstructure(value: Any) -> Any:
        if not _is_a(value, accepts):
            return value
        items = list(value) if item is None else [item(each) for each in value]
        return _sorted(items) if isinstance(value, set | frozenset) else items

    return unstructure


def _sorted(items: list[Any]) -> list[Any]:
    """The items in an order that does not depend on their hashes, which differ from run to run."""
    if not is_json(items):
        return items
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=canonical_text)


def _fixed_array(fixed: FixedArray) -> Unstructure:
    items = [unstructurer(item) for item in fixed.items]

    def unstructure(value: Any) -> Any:
        if not _is_a(value, tuple) or len(value) != len(items):
            return value
        return [each if item is None else item(each) for item, each in zip(items, value, strict=True)]

    return unstructure


def _dictionary(dictionary: Dictionary) -> Unstructure | None:
    key, item, accepts = unstructurer(dictionary.key), unstructurer(dictionary.value), dictionary.accepts
    if key is None and item is None and accepts is dict:
        return None

    def unstructure(value: Any) -> Any:
        if not _is_a(value, accepts):
            return value
        entries: dict[Any, Any] = dict(value)
        return {
            (name if key is None else key(name)): (each if item is None else item(each))
            for name, each in entries.items()
        }

    return unstructure


def _record(record: Record) -> Unstructure | None:
    return _dict_record(record) if record.is_dict else _class_record(record)


def _dict_record(record: Record) -> Unstructure | None:
    fields = {field.key: hook for field in record.fields if (hook := unstructurer(field.shape)) is not None}
    if not fields:
        return None

    def unstructure(value: Any) -> Any:
        if not _is_a(value, dict):
            return value
        entries: dict[Any, Any] = dict(value)
        return {key: fields[key](each) if key in fields else each for key, each in entries.items()}

    return unstructure


def _class_record(record: Record) -> Unstructure:
    hooks = {field.name: (field.key, unstructurer(field.shape) or _unchanged) for field in record.fields}
    return class_unstructurer(record.cls, hooks)


def _unchanged(value: Any) -> Any:
    return value


def _alternatives(alternatives: Alternatives) -> Unstructure | None:
    members = alternatives.members
    hooks = [(bare(member), hook) for member in members if (hook := unstructurer(member)) is not None]
    if not hooks:
        return None

    def unstructure(value: Any) -> Any:
        fitting = [hook for member, hook in hooks if _has_type(member, value)]
        # A base class fits as well, but writes less.
        exact = [hook for member, hook in hooks if isinstance(member, Record) and type(value) is member.cls]
        for hook in exact + fitting:
            # A hook leaves alone what it does not know, so what has become JSON has become the right JSON.
            if is_json(result := hook(value)):
                return result
        return fitting[0](value) if fitting else value

    return unstructure


def _is_a(value: object, classes: type | tuple[type, ...]) -> bool:
    # Without narrowing: what a container holds is not known, which is not what the type checkers make of it.
    return isinstance(value, classes)


def _has_type(shape: Shape, value: Any) -> bool:
    """Whether a value has the class of a shape; nothing is said of what it holds."""
    match shape:
        case Text(cls=cls):
            # Each date and time is a date, too, to isinstance.
            return type(value) is cls or (isinstance(value, cls) and cls.__module__ != "datetime")
        case Choice(options=options):
            return any(value is option.member for option in options)
        case Array(accepts=accepts):
            return isinstance(value, accepts)
        case FixedArray(items=items):
            return _is_a(value, tuple) and len(value) == len(items)
        case Dictionary(accepts=accepts):
            return isinstance(value, accepts)
        case Record(cls=cls, is_dict=is_dict):
            return isinstance(value, dict if is_dict else cls)
        case Block(cls=cls):
            return isinstance(value, cls)
        case _:
            return False


def _block(block: Block) -> Unstructure:
    cls = block.cls
    return lambda value: block_to_json(value) if _is_a(value, cls) else value


def _described(described: Described) -> Unstructure | None:
    return unstructurer(described.shape)


_UNSTRUCTURERS: Final[dict[type, Callable[[Any], Unstructure | None]]] = {
    Described: _described,
    Text: _text,
    Choice: _choice,
    Array: _array,
    FixedArray: _fixed_array,
    Dictionary: _dictionary,
    Record: _record,
    Block: _block,
    Alternatives: _alternatives,
}
