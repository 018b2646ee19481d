"""What a Python type means in JSON: the form from which schemas and conversions both ways are made."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import attrs

__all__ = [
    "MISSING",
    "Alternatives",
    "Anything",
    "Array",
    "Block",
    "Choice",
    "Described",
    "Dictionary",
    "Field",
    "FixedArray",
    "Option",
    "Record",
    "Scalar",
    "Shape",
    "Text",
    "UndescribableError",
    "bare",
    "members_of",
]


class _Missing(enum.Enum):
    MISSING = "MISSING"


MISSING: Final = _Missing.MISSING
"""A default that does not exist, or that has no JSON form."""


class UndescribableError(Exception):
    """A type has no JSON form; ``@tool`` turns this into a ``RegistrationError`` that names the parameter.

    Args:
        problem: What is wrong, as a clause.
        remedy: What to write instead.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def within(self, place: str) -> UndescribableError:
        """The same fault, seen from the outside of ``place``."""
        return UndescribableError(f"{place}: {self.problem}", self.remedy)


@attrs.frozen
class Anything:
    """Any lossless JSON; a body gets it plain and changeable."""


@attrs.frozen
class Scalar:
    """A JSON scalar as it is.

    Attributes:
        kind: A type of JSON Schema: ``null``, ``boolean``, ``integer``, ``number`` or ``string``.
        mixed: For ``number``: whether integers stay integers (``int | float``) rather than become floats.
    """

    kind: str
    mixed: bool = False


@attrs.frozen
class Text:
    """An object that is written as a string.

    Attributes:
        cls: Its class.
        what: What the string must be, for messages and descriptions; empty if any string will do.
        write: To the string; reads back with ``read``.
        read: From the string; raises ``ValueError`` if it is none.
    """

    cls: type
    what: str
    write: Callable[[Any], str] = attrs.field(eq=False)
    read: Callable[[str], object] = attrs.field(eq=False)


@attrs.frozen
class Option:
    """One of the values of a ``Choice``.

    Attributes:
        kind: The type of its JSON form in JSON Schema; it keeps ``1`` and ``True`` apart.
        json: Its JSON form, a scalar.
        member: What a body gets.
    """

    kind: str
    json: Any
    member: Any


@attrs.frozen
class Choice:
    """One of a few values: a ``Literal`` or an enum.

    Attributes:
        options: In declared order, at least one.
        cls: The enum, or ``None``.
        description: What the enum's docstring says.
    """

    options: tuple[Option, ...]
    cls: type[enum.Enum] | None = None
    description: str = attrs.field(default="", eq=False)


@attrs.frozen
class Array:
    """Any number of items of one shape.

    Attributes:
        item: The shape of each.
        build: Makes the container from a list.
        accepts: The classes of containers that a body may return for it.
    """

    item: Shape
    build: type
    accepts: tuple[type, ...]


@attrs.frozen
class FixedArray:
    """A tuple of as many items as there are shapes."""

    items: tuple[Shape, ...]


@attrs.frozen
class Dictionary:
    """An object with any keys.

    Attributes:
        key: The shape of the keys; its JSON form is a string.
        value: The shape of the values.
        accepts: The class of mappings that a body may return for it.
    """

    key: Shape
    value: Shape
    accepts: type


@attrs.frozen
class Field:
    """A field of a ``Record``.

    Attributes:
        name: Its attribute, or its key if the record is a ``TypedDict``.
        key: Its key in JSON: what the class is called with.
        shape: Its shape.
        required: Whether it must be given.
        default: Its default, or ``MISSING``; ``MISSING`` too if it is computed.
        description: For the model; may be empty.
        is_input: Whether it can be given; a field with ``init=False`` is only shown.
    """

    name: str
    key: str
    shape: Shape
    required: bool = True
    default: Any = MISSING
    description: str = ""
    is_input: bool = True


@attrs.frozen
class Record:
    """An object with declared keys.

    Attributes:
        cls: An attrs class, a dataclass, a ``NamedTuple`` or a ``TypedDict``.
        arguments: What its type variables stand for.
        fields: In declared order.
        is_dict: Whether its instances are dicts.
        description: What its docstring says.
    """

    cls: type
    arguments: tuple[Any, ...]
    fields: tuple[Field, ...] = attrs.field(eq=False)
    is_dict: bool = attrs.field(eq=False)
    description: str = attrs.field(eq=False)


@attrs.frozen
class Block:
    """A content block; ``cls`` is its class."""

    cls: type


@attrs.frozen
class Alternatives:
    """One of several shapes, none of which is ``Alternatives``; no two are equal."""

    members: tuple[Shape, ...]


@attrs.frozen
class Described:
    """A shape with a description from ``Annotated[T, "description"]``."""

    shape: Shape
    description: str


Shape: TypeAlias = (
    "Anything | Scalar | Text | Choice | Array | FixedArray | Dictionary | Record | Block | Alternatives | Described"
)


def bare(shape: Shape) -> Shape:
    """The shape without the descriptions around it."""
    while isinstance(shape, Described):
        shape = shape.shape
    return shape


def members_of(shape: Shape) -> Iterator[Shape]:
    """The shapes that a value may have: the members of a union, or the shape itself."""
    plain = bare(shape)
    if isinstance(plain, Alternatives):
        yield from plain.members
    else:
        yield shape
