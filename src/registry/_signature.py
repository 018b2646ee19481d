"""What a function takes and gives, read from its annotations and docstring."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, cast, get_args

import attrs

from ..errors import RegistrationError
from ._annotations import annotation_text, shape_of
from ._context import RunContext
from ._docstrings import Documentation, parse_docstring
from ._hints import Names, names_of_function, resolve
from ._json import JsonValue
from ._shapes import MISSING, Anything, Shape, UndescribableError
from ._structuring import Structure, structurer
from ._type_schema import property_schema, schema_of

__all__ = ["Parameter", "Signature", "function_name", "read_signature", "underlying"]

_KINDS: Final = {
    inspect.Parameter.POSITIONAL_ONLY: ("is positional-only, but arguments are given by name", "remove the / after it"),
    inspect.Parameter.VAR_POSITIONAL: ("takes any number of arguments", "take one parameter that is a list"),
    inspect.Parameter.VAR_KEYWORD: ("takes any names", "take one parameter that is a dict, or name the parameters"),
}


@attrs.frozen
class Parameter:
    """A parameter that the model fills in.

    Attributes:
        name: Its name.
        schema: Its JSON Schema, with description and default.
        required: Whether it has no default.
        structure: From JSON to what the function takes.
    """

    name: str
    schema: Mapping[str, JsonValue]
    required: bool
    structure: Structure


@attrs.frozen
class Signature:
    """A function, read.

    Attributes:
        description: What its docstring says.
        parameters: What the model fills in, in declared order.
        run_names: The parameters that get the ``RunContext``.
        result: The shape of what it returns.
        result_schema: The JSON Schema of that.
    """

    description: str
    parameters: tuple[Parameter, ...]
    run_names: tuple[str, ...]
    result: Shape
    result_schema: Mapping[str, JsonValue]


def underlying(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function or method behind partials, wrappers and objects with ``__call__``."""
    inner: Any = function
    while isinstance(inner, functools.partial):
        inner = cast("Any", inner).func
    inner = inspect.unwrap(inner)
    return inner if inspect.isroutine(inner) or inspect.isclass(inner) else inner.__call__


def function_name(function: Callable[..., Any]) -> str:
    """The name that a function has of itself.

    Raises:
        RegistrationError: It has none.
    """
    named: Any = function
    while isinstance(named, functools.partial) and not hasattr(cast("Any", named), "__name__"):
        named = cast("Any", named).func
    name = getattr(cast("Any", named), "__name__", None)
    if not isinstance(name, str) or not name.isidentifier():
        msg = f"{function!r:.80} has no name that a model could call it by: give one with tool(name=...)"
        raise RegistrationError(msg)
    return name


def read_signature(function: Callable[..., Any], tool: str) -> Signature:
    """Read a function.

    Args:
        function: It or whatever ``inspect.signature`` knows; what a partial fixes is no longer a parameter.
        tool: The tool's name, for messages.

    Raises:
        RegistrationError: It cannot be a tool; names the parameter, its annotation and the remedy.
    """
    inner = underlying(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise _error(
            tool,
            "it is a generator, but a tool returns one value",
            "return a list; report on the way with run.progress()",
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise _error(
            tool, f"its signature cannot be read ({error})", "wrap it in a function with annotations"
        ) from error
    fixed = function.keywords if isinstance(function, functools.partial) else {}
    documentation = parse_docstring(_docstring(inner))
    names = names_of_function(inner)
    parameters: list[Parameter] = []
    run_names: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name in fixed:
            continue
        annotation = _annotation(tool, parameter, names)
        if _is_run_context(annotation):
            run_names.append(parameter.name)
        else:
            parameters.append(_parameter(tool, parameter, annotation, documentation))
    result, schema = _result(tool, signature.return_annotation, names)
    return Signature(documentation.description, tuple(parameters), tuple(run_names), result, schema)


def _annotation(tool: str, parameter: inspect.Parameter, names: Names) -> Any:
    if parameter.kind in _KINDS:
        problem, remedy = _KINDS[parameter.kind]
        raise _error(tool, f'parameter "{parameter.name}" {problem}', remedy)
    if parameter.annotation is inspect.Parameter.empty:
        remedy = "annotate it; Any stands for any JSON"
        if parameter.name in {"self", "cls"}:
            remedy = "make the bound method a tool, not the function in the class"
        raise _error(tool, f'parameter "{parameter.name}" has no annotation', remedy)
    try:
        return resolve(parameter.annotation, names)
    except UndescribableError as error:
        raise _parameter_error(tool, parameter, error) from error


def _parameter(tool: str, parameter: inspect.Parameter, annotation: Any, documentation: Documentation) -> Parameter:
    has_default = parameter.default is not inspect.Parameter.empty
    default = parameter.default if has_default else MISSING
    try:
        shape = shape_of(annotation)
        schema = property_schema(shape, documentation.parameters.get(parameter.name, ""), default)
    except UndescribableError as error:
        raise _parameter_error(tool, parameter, error) from error
    return Parameter(parameter.name, schema, not has_default, structurer(shape))


def _result(tool: str, annotation: Any, names: Names) -> tuple[Shape, Mapping[str, JsonValue]]:
    if annotation is inspect.Signature.empty:
        return Anything(), {}
    try:
        shape = shape_of(resolve(annotation, names))
        return shape, schema_of(shape, output=True)
    except UndescribableError as error:
        place = f"the return annotation {annotation_text(annotation)}"
        raise _error(tool, f"{place}: {error.problem}", error.remedy) from error


def _is_run_context(annotation: Any) -> bool:
    """Whether an annotation is ``RunContext``, possibly with ``None`` or in ``Annotated``."""
    if annotation is RunContext:
        return True
    options = [each for each in get_args(annotation) if each is not type(None)]
    return bool(options) and options[0] is RunContext and (len(options) == 1 or hasattr(annotation, "__metadata__"))


def _docstring(function: Callable[..., Any]) -> str | None:
    text = function.__doc__
    if text is None and inspect.ismethod(function) and function.__name__ == "__call__":
        return type(function.__self__).__doc__
    return text


def _parameter_error(tool: str, parameter: inspect.Parameter, error: UndescribableError) -> RegistrationError:
    place = f'parameter "{parameter.name}" (annotated {annotation_text(parameter.annotation)})'
    return _error(tool, f"{place}: {error.problem}", error.remedy)


def _error(tool: str, problem: str, remedy: str) -> RegistrationError:
    return RegistrationError(f'tool "{tool}": {problem}; {remedy}')
