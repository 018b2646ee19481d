"""The fields that a class declares: attrs classes, dataclasses, named tuples and ``TypedDict``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Annotated, Any, Final, get_args, get_origin

import attrs

from ._hints import class_hints
from ._shapes import MISSING, UndescribableError

__all__ = ["Declared", "declared_fields", "is_record", "is_typed_dict", "qualifier_of"]

_ABSENT: Final = object()
_QUALIFIERS: Final = frozenset({"Final", "Required", "NotRequired", "ReadOnly"})


@attrs.frozen
class Declared:
    """A field as its class declares it; the attributes are those of ``Field``, but for the annotation."""

    name: str
    key: str
    annotation: Any
    required: bool
    default: Any = MISSING
    is_input: bool = True


def is_typed_dict(cls: Any) -> bool:
    """Whether a class is a ``TypedDict``, made by ``typing`` or ``typing_extensions``."""
    return dict in cls.__mro__ and hasattr(cls, "__required_keys__") and hasattr(cls, "__total__")


def is_record(cls: Any) -> bool:
    """Whether ``declared_fields`` knows the class."""
    return attrs.has(cls) or dataclasses.is_dataclass(cls) or _is_named_tuple(cls) or is_typed_dict(cls)


def declared_fields(cls: Any) -> Iterator[Declared]:
    """The fields of a class, in order.

    Raises:
        UndescribableError: A field has no annotation, or one that cannot be evaluated or that no JSON can fill.
    """
    hints, class_name = class_hints(cls), cls.__name__
    if attrs.has(cls):
        fields = _attrs_fields(cls, hints)
    elif dataclasses.is_dataclass(cls):
        fields = _dataclass_fields(cls, hints)
    elif _is_named_tuple(cls):
        fields = _tuple_fields(cls, hints)
    else:
        fields = _typed_dict_fields(cls, hints)
    for field in fields:
        if field.annotation is _ABSENT:
            problem = f'field "{field.name}" of {class_name} has no annotation'
            raise UndescribableError(problem, "annotate it")
        yield field


def _is_named_tuple(cls: Any) -> bool:
    return tuple in cls.__mro__ and hasattr(cls, "_fields") and hasattr(cls, "_field_defaults")


def _attrs_fields(cls: Any, hints: dict[str, Any]) -> Iterator[Declared]:
    for field in attrs.fields(cls):
        # A class made by attrs.make_class or `these=` has the type in the field only.
        given = _ABSENT if field.type is None else field.type
        default = field.default
        yield Declared(
            name=field.name,
            key=field.alias or field.name,
            annotation=hints.get(field.name, given),
            required=default is attrs.NOTHING,
            default=MISSING if default is attrs.NOTHING or isinstance(default, attrs.Factory) else default,  # type: ignore[arg-type]
            is_input=field.init,
        )


def _dataclass_fields(cls: Any, hints: dict[str, Any]) -> Iterator[Declared]:
    for name, hint in hints.items():
        is_init_var = hint is dataclasses.InitVar or isinstance(hint, dataclasses.InitVar)
        if is_init_var and not hasattr(cls, name):
            problem = f'field "{name}" of {cls.__name__} is an InitVar without a default'
            raise UndescribableError(problem, "give it a default, or make it a field")
    for field in dataclasses.fields(cls):
        has_default = field.default is not dataclasses.MISSING
        has_factory = field.default_factory is not dataclasses.MISSING
        yield Declared(
            name=field.name,
            key=field.name,
            annotation=hints.get(field.name, _ABSENT),
            required=not has_default and not has_factory,
            default=field.default if has_default else MISSING,
            is_input=field.init,
        )


def _tuple_fields(cls: Any, hints: dict[str, Any]) -> Iterator[Declared]:
    for name in cls._fields:
        default = cls._field_defaults.get(name, MISSING)
        yield Declared(name, name, hints.get(name, _ABSENT), required=default is MISSING, default=default)


def _typed_dict_fields(cls: Any, hints: dict[str, Any]) -> Iterator[Declared]:
    for name, hint in hints.items():
        # On 3.11 the class does not see Required and NotRequired in annotations that are strings.
        qualifiers = {*_qualifiers(hint)}
        required = "Required" in qualifiers or ("NotRequired" not in qualifiers and name in cls.__required_keys__)
        yield Declared(name, name, hint, required=required)


def _qualifiers(hint: Any) -> Iterator[str]:
    if get_origin(hint) is Annotated:
        yield from _qualifiers(get_args(hint)[0])
    elif (name := qualifier_of(hint)) is not None:
        yield name
        yield from _qualifiers(get_args(hint)[0])


def qualifier_of(hint: Any) -> str | None:
    """The name of the qualifier around a type, such as ``Final`` or ``NotRequired``, or ``None``."""
    # By name, since typing_extensions has a ReadOnly of its own.
    name = getattr(get_origin(hint), "_name", None)
    return name if name in _QUALIFIERS else None
