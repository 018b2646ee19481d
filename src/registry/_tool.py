"""``@tool``: a tool from a plain Python function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypedDict, Unpack, cast, overload

from ..errors import RegistrationError, ToolArgsError
from ._claims import EXCLUSIVE, Claims
from ._content import ContentBlock, as_content
from ._context import RunContext
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
from ._json import FrozenDict, JsonValue, freeze
from ._misfits import MisfitError
from ._shapes import Array, Block, FixedArray, Scalar, Shape, bare, members_of
from ._signature import Parameter, Signature, function_name, read_signature, underlying
from ._unstructuring import unstructurer
from ._validate import compile_validator
from ._values import Outcome

__all__ = ["ToolOptions", "definition_of", "tool"]


class ToolOptions(TypedDict, total=False):
    """The options of ``tool``."""

    name: str | None
    description: str | None
    concurrency: Concurrency
    timeout_ms: float | None
    render: Render | None
    presentation_meta: Project | None
    finalize_content: FinalizeContent | None
    present_call: Callable[[Arguments], JsonValue] | None
    present_result: Callable[[Arguments, Outcome], JsonValue] | None
    polls_cancelled: bool
    idempotent: bool


@overload
def tool(function: Callable[..., Any], /, **options: Unpack[ToolOptions]) -> ToolDefinition: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], ToolDefinition]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a function, from its annotations and docstring; a decorator, with or without options.

    The model fills in the function's parameters, except those annotated ``RunContext``, which are injected. They arrive
    as the annotations say; what the model sends beyond them is dropped. An async function runs as a task, any other
    in a worker thread. ``docs/tools.md`` says which annotations there are.

    Args:
        function: Also a bound method, a partial or an object with ``__call__``.
        **options: Any of these.
        name: As the model calls it; the function's own by default.
        description: For the model; from the docstring by default.
        concurrency: What a call touches: ``Claims``, ``PARALLEL``, ``INDEPENDENT`` or ``EXCLUSIVE`` (the default), or
            a synchronous pure function of the raw arguments (one mapping) that returns claims or a bool.
        timeout_ms: Budget in milliseconds for ``policies.Deadline``.
        render: ``(arguments, value)`` to content, as in ``Output``; by default text of the value, or the content
            blocks that the function is declared to return.
        presentation_meta: See ``Output``.
        finalize_content: See ``ToolDefinition``.
        present_call: See ``ToolDefinition``.
        present_result: See ``ToolDefinition``.
        polls_cancelled: See ``ToolDefinition``.
        idempotent: See ``ToolDefinition``.

    Returns:
        The definition, or a decorator that makes it.

    Raises:
        RegistrationError: The function cannot be a tool; names the parameter and the remedy.

    Source: ``docs/design.md``, section 4.
    """
    return partial(definition_of, **options) if function is None else definition_of(function, **options)


def definition_of(  # noqa: PLR0913 - the options of a tool, by name
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    concurrency: Concurrency = EXCLUSIVE,
    timeout_ms: float | None = None,
    render: Render | None = None,
    presentation_meta: Project | None = None,
    finalize_content: FinalizeContent | None = None,
    present_call: Callable[[Arguments], JsonValue] | None = None,
    present_result: Callable[[Arguments, Outcome], JsonValue] | None = None,
    polls_cancelled: bool = False,
    idempotent: bool = False,
) -> ToolDefinition:
    """The definition of a function as a tool; see ``tool`` for the arguments and errors."""
    if not callable(cast("object", function)):
        msg = f"tool() takes a function, got {function!r:.80}"
        raise RegistrationError(msg)
    known_as = function_name(function) if name is None else name
    _check_concurrency(known_as, concurrency)
    signature = read_signature(function, known_as)
    parameters = _frozen(_parameters_schema(signature))
    result = _frozen(signature.result_schema)
    return ToolDefinition(
        name=known_as,
        description=signature.description if description is None else description,
        parameters=parameters,
        output=Output(result, render or _default_render(signature.result), presentation_meta),
        bind=_bind(function, signature),
        check_arguments=partial(compile_validator(parameters), path=""),
        check_value=partial(compile_validator(result), path="value"),
        concurrency=concurrency,
        timeout_ms=timeout_ms,
        finalize_content=finalize_content,
        present_call=present_call,
        present_result=present_result,
        unstructure=unstructurer(signature.result),
        takes_run=bool(signature.run_names),
        # A wrapper that is no coroutine function itself still hands on the coroutine of the one it wraps.
        is_sync=not (is_async_callable(function) or is_async_callable(underlying(function))),
        polls_cancelled=polls_cancelled,
        idempotent=idempotent,
    )


def _check_concurrency(tool_name: str, concurrency: object) -> None:
    if concurrency is None or isinstance(concurrency, Claims | bool):
        return
    if not callable(concurrency) or isinstance(concurrency, type) or is_async_callable(concurrency):
        msg = (
            f'tool "{tool_name}": concurrency= takes PARALLEL, EXCLUSIVE, INDEPENDENT, other Claims, or a synchronous '
            f"function of the arguments that returns Claims or a bool, got {concurrency!r:.80}"
        )
        raise RegistrationError(msg)


def _parameters_schema(signature: Signature) -> dict[str, JsonValue]:
    properties: dict[str, JsonValue] = {each.name: dict(each.schema) for each in signature.parameters}
    required: list[JsonValue] = [each.name for each in signature.parameters if each.required]
    schema: dict[str, JsonValue] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return schema


def _frozen(schema: object) -> FrozenDict:
    return cast("FrozenDict", freeze(schema))


def _bind(function: Callable[..., Any], signature: Signature) -> Bind:
    parameters, run_names = signature.parameters, signature.run_names

    def bind(arguments: Arguments, run: RunContext | None) -> Callable[[], object]:
        values = _structured(parameters, arguments)
        for run_name in run_names:
            values[run_name] = run
        return partial(function, **values)

    return bind


def _structured(parameters: tuple[Parameter, ...], arguments: Arguments) -> dict[str, Any]:
    values: dict[str, Any] = {}
    violations: list[str] = []
    for parameter in parameters:
        if parameter.name not in arguments:
            continue
        try:
            values[parameter.name] = parameter.structure(arguments[parameter.name])
        except MisfitError as error:
            violations += error.texts(parameter.name)
    if violations:
        raise ToolArgsError.of(violations)
    return values


def _default_render(result: Shape) -> Render:
    return _render_blocks if _gives_blocks(result) else render_as_text


def _gives_blocks(shape: Shape) -> bool:
    """Whether a shape is content: blocks, with or without text among them, one or several."""
    members = [bare(member) for member in members_of(shape)]
    if len(members) == 1 and isinstance(members[0], Array):
        return _gives_blocks(members[0].item)
    if len(members) == 1 and isinstance(members[0], FixedArray):
        return bool(members[0].items) and all(_gives_blocks(item) for item in members[0].items)
    plain = (Scalar("string"), Scalar("null"))
    return any(isinstance(each, Block) for each in members) and all(
        isinstance(each, Block) or each in plain for each in members
    )


def _render_blocks(_arguments: Arguments, value: JsonValue) -> tuple[ContentBlock, ...]:
    return () if value is None else as_content(value)
