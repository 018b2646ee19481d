"""What can be said of shapes: how alternatives combine, what can be in a set, and what can be a key."""

from __future__ import annotations

from collections.abc import Iterable

from ._shapes import (
    Alternatives,
    Anything,
    Array,
    Choice,
    Dictionary,
    FixedArray,
    Option,
    Record,
    Scalar,
    Shape,
    Text,
    bare,
    members_of,
)

__all__ = ["combine", "is_hashable", "is_key"]

_INTEGER = Scalar("integer")
_NUMBER = Scalar("number")
# What the alias JsonValue lists.
_ALL_JSON = (
    *(Scalar("null"), Scalar("boolean"), Scalar("string"), Scalar("number", mixed=True)),
    Array(Anything(), list, (list,)),
    Dictionary(Scalar("string"), Anything(), dict),
)


def combine(shapes: Iterable[Shape]) -> Shape:
    """The shape of a union.

    Args:
        shapes: At least one; the members in declared order, unions among them flattened here.

    Returns:
        ``Anything`` if one of them is, or if there is one for each kind of JSON. Otherwise equal members count once,
        literals are joined, and an integer beside a number is a number that keeps its kind.
    """
    flat = [member for shape in shapes for member in members_of(shape)]
    members: list[Shape] = []
    for member in flat:
        if not any(bare(member) == bare(other) for other in members):
            members.append(member)
    plain = [bare(member) for member in members]
    if Anything() in plain:
        return Anything()
    members = _join_literals(members)
    if _INTEGER in plain and _NUMBER in plain:
        first = min(plain.index(_INTEGER), plain.index(_NUMBER))
        members = [member for member in members if bare(member) not in (_INTEGER, _NUMBER)]
        members.insert(min(first, len(members)), Scalar("number", mixed=True))
    if all(each in members for each in _ALL_JSON):
        return Anything()
    return members[0] if len(members) == 1 else Alternatives(tuple(members))


def _join_literals(members: list[Shape]) -> list[Shape]:
    literals = [choice for each in members if isinstance(choice := bare(each), Choice) and choice.cls is None]
    if len(literals) < 2:  # noqa: PLR2004
        return members
    options: list[Option] = []
    for option in (option for literal in literals for option in literal.options):
        if option not in options:
            options.append(option)
    joined: list[Shape] = []
    for member in members:
        if bare(member) not in literals:
            joined.append(member)
        elif not any(isinstance(other, Choice) and other.cls is None for other in joined):
            joined.append(Choice(tuple(options)))
    return joined


def is_key(shape: Shape) -> bool:
    """Whether the JSON form is always a string."""
    return all(_is_string(bare(member)) for member in members_of(shape))


def _is_string(shape: Shape) -> bool:
    if isinstance(shape, Choice):
        return all(option.kind == "string" for option in shape.options)
    return isinstance(shape, Text) or shape == Scalar("string")


def is_hashable(shape: Shape) -> bool:
    """Whether values of this shape can be in a set, as far as that can be known."""
    return all(_is_hashable(bare(member)) for member in members_of(shape))


def _is_hashable(shape: Shape) -> bool:
    match shape:
        case Array(item=item, build=build):
            return build in (tuple, frozenset) and is_hashable(item)
        case FixedArray(items=items):
            return all(is_hashable(item) for item in items)
        case Dictionary():
            return False
        case Record(cls=cls, is_dict=is_dict):
            return not is_dict and getattr(cls, "__hash__", None) is not None
        case _:
            return True
