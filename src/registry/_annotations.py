"""From annotations to shapes: which Python types a tool may use, and why the others are refused."""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import enum
import types
import typing
from collections.abc import Callable
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal, NewType, TypeVar, Union, cast, get_args, get_origin

from ._content import ImageBlock, OtherBlock, TextBlock
from ._docstrings import class_documentation
from ._hints import substitute, type_variables
from ._json import is_json
from ._records import declared_fields, is_record, is_typed_dict, qualifier_of
from ._shape_algebra import combine, is_hashable, is_key
from ._shapes import (
    Anything,
    Array,
    Block,
    Choice,
    Described,
    Dictionary,
    Field,
    FixedArray,
    Option,
    Record,
    Scalar,
    Shape,
    Text,
    UndescribableError,
)

__all__ = ["annotation_text", "shape_of"]

Enclosing = tuple[Any, ...]

_SCALARS: Final[dict[object, str]] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
}
_DATES: Final = {
    datetime.datetime: "an ISO 8601 date and time",
    datetime.date: "an ISO 8601 date",
    datetime.time: "an ISO 8601 time",
}
_ARRAYS: Final[dict[type, tuple[type, tuple[type, ...]]]] = {
    list: (list, (list,)),
    set: (set, (set,)),
    frozenset: (frozenset, (frozenset,)),
    collections.abc.MutableSequence: (list, (list,)),
    collections.abc.Sequence: (list, (list, tuple)),
    collections.abc.Collection: (list, (list, tuple, set, frozenset)),
    collections.abc.Iterable: (list, (list, tuple, set, frozenset)),
    collections.abc.MutableSet: (set, (set,)),
    collections.abc.Set: (frozenset, (set, frozenset)),
}
_DICTIONARIES: Final = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_MAX_NESTING: Final = 100
"""Classes and aliases inside each other; more come only from a generic that contains an ever larger form of itself."""
_RECURSIVE: Final = "annotate the part that repeats as Any, or as quiesce.registry.JsonValue, and check it in the tool"
_REMEDIES: Final[dict[object, str]] = {
    **dict.fromkeys((bytes, bytearray, memoryview), "take base64 text as str, or the path of a file"),
    complex: "take its two parts as floats",
    decimal.Decimal: "take it as str or float",
    collections.abc.Awaitable: "make the function async, and annotate what awaiting it gives",
    collections.abc.Coroutine: "make the function async, and annotate what awaiting it gives",
    collections.abc.Iterator: "use a list",
    collections.abc.Generator: "use a list",
    collections.abc.AsyncIterator: "use a list",
}
_ANY_REMEDY: Final = (
    "use builtin types, Literal, enums, Path, dates, TypedDict, named tuples, dataclasses or attrs classes, or Any for "
    "JSON that the tool checks itself"
)


def shape_of(annotation: Any, enclosing: Enclosing = ()) -> Shape:
    """What a type means in JSON.

    Args:
        annotation: The type; no strings or forward references are left in it.
        enclosing: The classes and aliases that it stands in, to notice recursion.

    Raises:
        UndescribableError: It means nothing in JSON, or nothing that the schema subset can say.
    """
    for rule in _RULES:
        shape = rule(annotation, enclosing)
        if shape is not None:
            return shape
    raise _refusal(annotation)


def annotation_text(annotation: Any) -> str:
    """An annotation as its author would write it."""
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__qualname__.rpartition(".<locals>.")[2]
    return annotation if isinstance(annotation, str) else repr(annotation)


def _wrapped(annotation: Any, enclosing: Enclosing) -> Shape | None:
    if get_origin(annotation) is Annotated:
        inner, *extras = get_args(annotation)
        texts = [text for extra in extras if isinstance(text := getattr(extra, "documentation", extra), str)]
        shape = shape_of(inner, enclosing)
        return Described(shape, texts[0]) if texts else shape
    if qualifier_of(annotation) is not None:
        return shape_of(get_args(annotation)[0], enclosing)
    if isinstance(annotation, NewType):
        return shape_of(annotation.__supertype__, enclosing)
    return None


def _type_alias(annotation: Any, enclosing: Enclosing) -> Shape | None:
    # `type X = ...` (3.12), or TypeAliasType of typing_extensions.
    alias = get_origin(annotation) or annotation
    if type(alias).__name__ != "TypeAliasType":
        return None
    inside = _enter(annotation, enclosing, alias.__name__)
    known = dict(zip(alias.__type_params__, get_args(annotation), strict=False))
    return shape_of(substitute(alias.__value__, known), inside)


def _plain(annotation: Any, _enclosing: Enclosing) -> Shape | None:
    if annotation is Any or annotation is object:
        return Anything()
    if annotation is None:
        return Scalar("null")
    if annotation is typing.LiteralString:
        return Scalar("string")
    if isinstance(annotation, type) and annotation in _SCALARS:
        return Scalar(_SCALARS[annotation])
    return None


def _text(annotation: Any, _enclosing: Enclosing) -> Shape | None:
    if not isinstance(annotation, type):
        return None
    if annotation in _DATES:
        dates: Any = annotation
        return Text(annotation, _DATES[annotation], dates.isoformat, dates.fromisoformat)
    if issubclass(annotation, PurePath):
        return Text(annotation, "", str, annotation)
    return None


def _literal(annotation: Any, _enclosing: Enclosing) -> Shape | None:
    if get_origin(annotation) is not Literal:
        return None
    values = [(each.value if isinstance(each, enum.Enum) else each, each) for each in get_args(annotation)]
    return Choice(_options(values, "the value {!r}"))


def _enumeration(annotation: Any, _enclosing: Enclosing) -> Shape | None:
    if not isinstance(annotation, type) or not issubclass(annotation, enum.Enum):
        return None
    cls = annotation
    if issubclass(cls, enum.Flag):
        problem = f"{cls.__name__} is a set of flags, which one JSON value cannot name"
        raise UndescribableError(problem, f"make {cls.__name__} a plain Enum and take a set of it")
    members = [(member.value, member) for member in cls]
    if not members:
        problem = f"{cls.__name__} has no members"
        raise UndescribableError(problem, "give it some")
    return Choice(
        _options(members, cls.__name__ + " has the value {!r}, which"), cls, class_documentation(cls).description
    )


def _options(values: list[tuple[Any, Any]], what: str) -> tuple[Option, ...]:
    kinds: list[str] = []
    for value, _member in values:
        kind = _SCALARS.get(type(cast("object", value)))
        if kind is None or not is_json(value):
            problem = f"{what.format(value)} is no JSON scalar"
            raise UndescribableError(problem, "use strings, finite numbers, booleans or None")
        kinds.append(kind)
    # One number with a fraction makes them all numbers: the model is shown one list.
    numeric = {"integer": "number"} if "number" in kinds else {}
    pairs = zip(kinds, values, strict=True)
    return tuple(Option(numeric.get(kind, kind), value, member) for kind, (value, member) in pairs)


def _union(annotation: Any, enclosing: Enclosing) -> Shape | None:
    if get_origin(annotation) not in {Union, types.UnionType}:
        return None
    return combine([shape_of(each, enclosing) for each in get_args(annotation)])


def _tuple(annotation: Any, enclosing: Enclosing) -> Shape | None:
    if annotation is tuple or annotation is typing.Tuple:  # noqa: UP006 - the old spelling is recognised too
        return Array(Anything(), tuple, (tuple,))
    if get_origin(annotation) is not tuple:
        return None
    items = get_args(annotation)
    if len(items) == 2 and items[1] is Ellipsis:  # noqa: PLR2004
        return Array(shape_of(items[0], enclosing), tuple, (tuple,))
    return FixedArray(tuple(shape_of(item, enclosing) for item in items))


def _array(annotation: Any, enclosing: Enclosing) -> Shape | None:
    origin = get_origin(annotation) or annotation
    if not isinstance(origin, type) or origin not in _ARRAYS:
        return None
    build, accepts = _ARRAYS[origin]
    arguments = get_args(annotation)
    item = shape_of(arguments[0], enclosing) if arguments else Anything()
    if build is not list and not is_hashable(item):
        problem = f"the items of {annotation_text(annotation)} cannot be in a set, since they can change"
        raise UndescribableError(problem, "use a list, or frozen items")
    return Array(item, build, accepts)


def _dictionary(annotation: Any, enclosing: Enclosing) -> Shape | None:
    origin = get_origin(annotation) or annotation
    if not isinstance(origin, type) or origin not in _DICTIONARIES:
        return None
    key, value = get_args(annotation) or (str, Any)
    key_shape = shape_of(key, enclosing)
    if not is_key(key_shape):
        problem = f"{annotation_text(key)} cannot be a key, since the keys of JSON objects are strings"
        raise UndescribableError(problem, "use str keys, or a list of pairs")
    return Dictionary(key_shape, shape_of(value, enclosing), origin)


def _block(annotation: Any, _enclosing: Enclosing) -> Shape | None:
    return Block(annotation) if annotation in (TextBlock, ImageBlock, OtherBlock) else None


def _record(annotation: Any, enclosing: Enclosing) -> Shape | None:
    cls = get_origin(annotation) or annotation
    if not isinstance(cls, type) or not is_record(cls):
        return None
    inside = _enter(annotation, enclosing, cls.__name__)
    known = type_variables(cls, get_args(annotation))
    documentation = class_documentation(cls)
    fields: list[Field] = []
    for declared in declared_fields(cls):
        try:
            shape = shape_of(substitute(declared.annotation, known), inside)
        except UndescribableError as error:
            place = f'field "{declared.name}" of {cls.__name__}'
            raise error.within(place) from error
        fields.append(
            Field(
                name=declared.name,
                key=declared.key,
                shape=shape,
                required=declared.required,
                default=declared.default,
                description=documentation.parameters.get(declared.name, ""),
                is_input=declared.is_input,
            )
        )
    return Record(cls, get_args(annotation), tuple(fields), is_typed_dict(cls), documentation.description)


_RULES: Final[tuple[Callable[[Any, Enclosing], Shape | None], ...]] = (
    _wrapped,
    _type_alias,
    _plain,
    _text,
    _literal,
    _enumeration,
    _union,
    _tuple,
    _array,
    _dictionary,
    _block,
    _record,
)


def _enter(annotation: Any, enclosing: Enclosing, name: str) -> Enclosing:
    if annotation in enclosing or len(enclosing) >= _MAX_NESTING:
        problem = f"{name} contains itself, which the schema subset cannot say (it has no $ref)"
        raise UndescribableError(problem, _RECURSIVE)
    return (*enclosing, annotation)


def _refusal(annotation: Any) -> UndescribableError:
    if isinstance(annotation, TypeVar):
        problem = f"the type variable {annotation.__name__} stands for nothing"
        return UndescribableError(problem, "use a concrete type, such as Box[int] rather than Box")
    if isinstance(annotation, typing.ForwardRef):
        problem = (
            f"{annotation.__forward_arg__} is defined by itself, which the schema subset cannot say (it has no $ref)"
        )
        return UndescribableError(problem, _RECURSIVE)
    kind = get_origin(annotation) or annotation
    remedy = _REMEDIES.get(kind, _ANY_REMEDY) if isinstance(kind, type) else _ANY_REMEDY
    return UndescribableError(f"{annotation_text(annotation)} has no JSON form", remedy)
