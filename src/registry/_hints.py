"""Annotations as types: strings and forward references evaluated, type variables replaced."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from ._context import RunContext
from ._json import JsonObject, JsonValue
from ._shapes import UndescribableError

__all__ = ["Names", "class_hints", "names_of_function", "resolve", "substitute", "type_variables"]

Names = dict[str, Any]

# JsonValue and JsonObject are strings at run time, and the three are often imported for type checkers only.
_KNOWN: Names = {"JsonValue": Any, "JsonObject": dict[str, Any], "RunContext": RunContext}
_UNRESOLVED: Final = (
    "define the names it uses before the tool, and import them at run time, not only under TYPE_CHECKING"
)


def resolve(annotation: object, names: Names) -> Any:
    """Evaluate an annotation.

    Args:
        annotation: As it stands in ``__annotations__``.
        names: What its names mean.

    Raises:
        UndescribableError: It cannot be evaluated.
    """
    holder = type("Holder", (), {"__annotations__": {"it": annotation}})
    try:
        return get_type_hints(holder, names, names, include_extras=True)["it"]
    except Exception as error:
        problem = f"it cannot be resolved ({type(error).__name__}: {error})"
        raise UndescribableError(problem, _UNRESOLVED) from error


def names_of_function(function: Callable[..., object]) -> Names:
    """What names mean in the annotations of a function: globals, enclosing functions' locals, type parameters."""
    inner = inspect.unwrap(function)
    names = _names(getattr(inner, "__globals__", {}), inner)
    return names | _plain(_closure(getattr(inner, "__func__", inner)))


def class_hints(cls: type) -> dict[str, Any]:
    """The annotations of a class and its bases, evaluated.

    Raises:
        UndescribableError: One cannot be evaluated; it names the field.
    """
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        declared = inspect.get_annotations(base)
        if not declared:
            continue
        module = vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
        names = {**vars(base), **_names(module, base)}
        for name, annotation in declared.items():
            try:
                hints[name] = resolve(annotation, names)
            except UndescribableError as error:
                place = f'field "{name}" of {cls.__name__}'
                raise error.within(place) from error
    return hints


def type_variables(cls: type, arguments: tuple[Any, ...]) -> dict[Any, Any]:
    """What the type variables of a generic class and its bases stand for.

    Args:
        cls: The class.
        arguments: Its type arguments; none if it is not subscripted.
    """
    known = dict(zip(getattr(cls, "__parameters__", ()), arguments, strict=False))
    for base in getattr(cls, "__orig_bases__", ()):
        origin = get_origin(base)
        if isinstance(origin, type):
            known = type_variables(origin, tuple(substitute(each, known) for each in get_args(base))) | known
    return known


def substitute(annotation: Any, known: Mapping[Any, Any]) -> Any:
    """The annotation with its type variables replaced; those that are not known stay."""
    if isinstance(annotation, TypeVar):
        return known.get(annotation, annotation)
    # A class that is generic itself stays as it is; only what is subscripted with variables changes.
    parameters: tuple[Any, ...] = getattr(annotation, "__parameters__", ()) if get_args(annotation) else ()
    if not any(each in known for each in parameters):
        return annotation
    return annotation[tuple(known.get(each, each) for each in parameters)]


def _names(module: Mapping[str, Any], owner: Any) -> Names:
    names = _KNOWN | _plain(module)
    for scope in reversed([*_enclosing_scopes(owner)]):
        names |= _plain(scope)
    return names | {each.__name__: each for each in getattr(owner, "__type_params__", ())}


def _plain(names: Mapping[str, Any]) -> Names:
    aliases = {id(JsonValue): Any, id(JsonObject): dict[str, Any]}
    return {name: aliases.get(id(value), value) for name, value in names.items()}


def _closure(function: Any) -> Names:
    """What a function captured and is assigned by now; a local tool that calls itself is not, while it is decorated."""
    names: tuple[str, ...] = function.__code__.co_freevars if inspect.isfunction(function) else ()
    found: Names = {}
    for name, cell in zip(names, function.__closure__ or (), strict=True) if names else ():
        with contextlib.suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def _enclosing_scopes(owner: Any) -> Iterator[Mapping[str, Any]]:
    """The locals of the functions around a local function or class, innermost first, as far as they are running.

    An annotation that is a string does not capture them, so a closure does not show them.
    """
    wanted = getattr(owner, "__qualname__", "").rpartition(".<locals>.")[0]
    frame = inspect.currentframe() if wanted else None
    while frame is not None and wanted:
        if frame.f_code.co_qualname == wanted and frame.f_globals.get("__name__") == owner.__module__:
            yield frame.f_locals
            wanted = wanted.rpartition(".<locals>.")[0]
        frame = frame.f_back
