"""``@tool``: a tool definition from a plain function's annotations and docstring."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast, get_args, overload

import attrs

from ..errors import RegistrationError
from ._claims import EXCLUSIVE
from ._content import ContentBlock, ImageBlock, OtherBlock, TextBlock, as_content, block_to_json
from ._context import RunContext
from ._decisions import UNSET
from ._definitions import (
    Arguments,
    Bind,
    Concurrency,
    FinalizeContent,
    Output,
    Project,
    Render,
    ToolDefinition,
    is_async_callable,
    render_as_text,
)
from ._docstrings import docs_of
from ._json import JsonValue, freeze
from ._schema_check import check_schema
from ._structuring import structure_arguments, unstructure_as
from ._type_schema import Field, UndescribableError, is_union, schema_of, strip
from ._validate import compile_validator

__all__ = ["definition_of", "tool"]

F = TypeVar("F", bound=Callable[..., Any])
_BLOCKS = (TextBlock, ImageBlock, OtherBlock)


@overload
def tool(function: Callable[..., Any], /) -> ToolDefinition: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    concurrency: Concurrency = EXCLUSIVE,
    timeout_ms: float | None = None,
    render: Render | None = None,
    presentation_meta: Project | None = None,
    finalize_content: FinalizeContent | None = None,
    present_call: Callable[..., JsonValue] | None = None,
    present_result: Callable[..., JsonValue] | None = None,
    polls_cancelled: bool = False,
) -> Callable[[Callable[..., Any]], ToolDefinition]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a ``ToolDefinition`` of a function, from its annotations and its docstring.

    The parameters become the schema, and arguments reach the function as the types it declares. A parameter annotated
    ``RunContext`` is injected. A plain function runs in a worker thread. The return annotation gives the output schema.

    Args:
        function: The function, async or not; or give options and decorate.
        **options: As below.
        name: The tool's name; the function's if omitted.
        description: For the model; that of the docstring if omitted.
        concurrency: ``PARALLEL``, ``EXCLUSIVE`` (the default), ``INDEPENDENT``, other ``Claims``, or a synchronous
            function of the raw arguments (one mapping) that returns a bool or ``Claims``.
        timeout_ms: Budget in milliseconds for ``policies.Deadline``.
        render: ``(arguments, value)`` to content; text of the value by default.
        presentation_meta: See ``Output``.
        finalize_content: See ``ToolDefinition``.
        present_call: See ``ToolDefinition``.
        present_result: See ``ToolDefinition``.
        polls_cancelled: Whether a plain function looks at ``run.cancelled``.

    Raises:
        RegistrationError: A parameter or the return type cannot be described; it names the tool and the parameter.
    """
    if function is not None:
        return definition_of(function, **options)
    return partial(definition_of, **options)


def definition_of(  # noqa: PLR0913 - each option is a field of a definition, by keyword
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    concurrency: Concurrency = EXCLUSIVE,
    timeout_ms: float | None = None,
    render: Render | None = None,
    presentation_meta: Project | None = None,
    finalize_content: FinalizeContent | None = None,
    present_call: Callable[..., JsonValue] | None = None,
    present_result: Callable[..., JsonValue] | None = None,
    polls_cancelled: bool = False,
) -> ToolDefinition:
    """See ``tool``."""
    label = name or _name_of(function)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        msg = (
            f'tool "{label}" is a generator; a tool returns one value, so return a list, or report with run.progress()'
        )
        raise RegistrationError(msg)
    if callable(concurrency) and is_async_callable(concurrency):
        msg = f'tool "{label}": concurrency= takes a plain function of the arguments, got the async {concurrency!r:.80}'
        raise RegistrationError(msg)
    signature = _read_signature(function, label)
    parameters = _parameters_schema(signature, label)
    output = _output_schema(signature, label)
    return ToolDefinition(
        name=label,
        description=signature.description if description is None else description,
        parameters=freeze(parameters),  # type: ignore[arg-type]
        output=Output(freeze(output), render or _render_of(signature.returns), presentation_meta),  # type: ignore[arg-type]
        bind=_bind(function, signature),
        check_arguments=partial(compile_validator(parameters), path=""),
        check_value=partial(compile_validator(output), path="value"),
        concurrency=concurrency,
        timeout_ms=timeout_ms,
        finalize_content=finalize_content,
        present_call=present_call,
        present_result=present_result,
        unstructure=_blocks_to_json if _returns_blocks(signature.returns) else unstructure_as(signature.returns),
        takes_run=signature.run_name is not None,
        is_sync=not is_async_callable(function),
        polls_cancelled=polls_cancelled,
    )


@attrs.frozen
class Signature:
    """What was read off a function.

    Attributes:
        description: Of the docstring.
        fields: Its parameters by name, in order, without the run context.
        run_name: The parameter that takes the run context, or ``None``.
        returns: The return annotation; ``Any`` if there is none.
    """

    description: str
    fields: dict[str, Field]
    run_name: str | None
    returns: Any


def _read_signature(function: Callable[..., Any], label: str) -> Signature:
    docs = docs_of(_annotated(function))
    hints = _hints(function, label)
    fields: dict[str, Field] = {}
    run_name: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        _refuse_kind(parameter, label)
        if parameter.name not in hints:
            msg = f'tool "{label}": parameter "{parameter.name}" has no annotation; write its type, or Any for any JSON'
            raise RegistrationError(msg)
        annotation = hints[parameter.name]
        if _is_run_context(annotation):
            run_name = parameter.name
            continue
        required = parameter.default is inspect.Parameter.empty
        default = UNSET if required else parameter.default
        text = strip(annotation)[1] or docs.parameters.get(parameter.name, "")
        fields[parameter.name] = Field(parameter.name, annotation, required, default, text)
    return Signature(docs.description, fields, run_name, hints.get("return", Any))


def _annotated(function: Callable[..., Any]) -> Any:
    """The function that carries the annotations and the docstring: behind partials, or a callable object's method."""
    while isinstance(function, partial):
        function = function.func
    return function if inspect.isroutine(function) or inspect.isclass(function) else type(function).__call__


def _hints(function: Callable[..., Any], label: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(_annotated(function), include_extras=True)
    except NameError as error:
        msg = (
            f'tool "{label}": an annotation cannot be resolved ({error}); define what it names at module level, and '
            "outside `if TYPE_CHECKING`"
        )
        raise RegistrationError(msg) from error


def _refuse_kind(parameter: inspect.Parameter, label: str) -> None:
    problems = {
        inspect.Parameter.VAR_POSITIONAL: ("takes any number of values", "take a list"),
        inspect.Parameter.VAR_KEYWORD: ("takes any names", "take a dict[str, Any]"),
        inspect.Parameter.POSITIONAL_ONLY: ("has no name that a model could use", "drop the / after it"),
    }
    if parameter.kind in problems:
        problem, remedy = problems[parameter.kind]
        msg = f'tool "{label}": parameter "{parameter}" {problem}; {remedy}'
        raise RegistrationError(msg)


def _is_run_context(annotation: Any) -> bool:
    bare, _ = strip(annotation)
    return bare is RunContext or (is_union(bare) and RunContext in get_args(bare))


def _parameters_schema(signature: Signature, label: str) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for field in signature.fields.values():
        try:
            properties[field.name] = field.schema()
        except UndescribableError as error:
            msg = f'tool "{label}": parameter "{field.name}" cannot be described: {error}'
            raise RegistrationError(msg) from error
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [field.name for field in signature.fields.values() if field.required]
    return _within_subset(schema | ({"required": required} if required else {}), label)


def _output_schema(signature: Signature, label: str) -> dict[str, Any]:
    if _returns_blocks(signature.returns):
        return {}
    try:
        return _within_subset(schema_of(signature.returns), label)
    except UndescribableError as error:
        msg = f'tool "{label}": the return type cannot be described: {error}'
        raise RegistrationError(msg) from error


def _within_subset(schema: dict[str, Any], label: str) -> dict[str, Any]:
    violations = check_schema(schema)
    if violations:
        msg = f'tool "{label}": {"; ".join(violations)}'
        raise RegistrationError(msg)
    return schema


def _bind(function: Callable[..., Any], signature: Signature) -> Bind:
    fields, run_name = signature.fields, signature.run_name

    def bind(arguments: Arguments, run: RunContext | None) -> Callable[[], object]:
        given = structure_arguments(fields, arguments) if fields else {}
        if run_name is not None:
            given[run_name] = run
        return partial(function, **given)

    return bind


def _name_of(function: Callable[..., Any]) -> str:
    while isinstance(function, partial):
        function = function.func
    return cast("str", getattr(function, "__name__", type(function).__name__))


def _returns_blocks(returns: Any) -> bool:
    """Whether a return type is content blocks: one, a union with or without text, or a list or tuple of those."""
    bare, _ = strip(returns)
    members = get_args(bare)
    if is_union(bare):
        return any(map(_returns_blocks, members)) and all(m is str or _returns_blocks(m) for m in members)
    if typing.get_origin(bare) in (list, tuple):
        return any(map(_returns_blocks, members)) and all(m in (str, ...) or _returns_blocks(m) for m in members)
    return bare in _BLOCKS


def _blocks_to_json(value: object) -> object:
    blocks: list[JsonValue] = [block_to_json(block) for block in as_content(value)]
    return blocks


def _render_blocks(_arguments: Arguments, value: JsonValue) -> tuple[ContentBlock, ...]:
    return as_content(value)


def _render_of(returns: Any) -> Render:
    return _render_blocks if _returns_blocks(returns) else render_as_text
