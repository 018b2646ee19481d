"""Tool definitions: the one form in which every tool reaches the registry."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol, TypeAlias, cast

import attrs

from ..errors import JsonSchemaError, NotLosslessError, RegistrationError, ToolArgsError
from ._canonical import canonical_text
from ._claims import Claims
from ._context import CallView, RunContext
from ._json import FrozenDict, JsonValue, freeze, snapshot
from ._raw_schema import compile_raw_validator
from ._schema_check import check_schema
from ._schema_dsl import parameters_to_json_schema, value_to_json_schema
from ._validate import Validator, compile_validator
from ._values import Outcome

__all__ = ["Bind", "Concurrency", "Output", "ToolDefinition", "define_raw_tool", "define_tool"]

Arguments: TypeAlias = FrozenDict
Concurrency: TypeAlias = Claims | bool | Callable[[Arguments], object] | None
Render: TypeAlias = Callable[[Arguments, JsonValue], object]
Project: TypeAlias = Callable[[Arguments, JsonValue], JsonValue]
FinalizeContent: TypeAlias = Callable[[CallView, Outcome], object]


class Bind(Protocol):
    """How a definition's body is reached."""

    def __call__(self, arguments: Arguments, run: RunContext | None) -> Callable[[], object]:
        """Prepare one invocation.

        Args:
            arguments: Valid, frozen arguments.
            run: The run context, or ``None`` if the tool does not take one.

        Returns:
            A function that *is* the body: calling it invokes the tool. It returns an awaitable, or for a
            synchronous tool the value.

        Raises:
            ToolArgsError: The arguments cannot be turned into what the function takes.
        """
        ...


def render_as_text(_arguments: Arguments, value: JsonValue) -> str:
    """The default rendering: a string as it is, ``None`` as nothing, anything else as canonical JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else canonical_text(value)


@attrs.frozen
class Output:
    """What a tool returns, and how it is shown.

    Attributes:
        schema: For ``define_tool`` a node of the schema DSL, for a ``ToolDefinition`` JSON Schema in the enforced
            subset. Every value is checked against it.
        render: ``(arguments, value)`` to content: text, a content block or several. Text of the value by default.
        presentation_meta: ``(arguments, value)`` to JSON kept beside the content for a user interface, or
            ``None``. Not computed for sub-calls.
    """

    schema: Mapping[str, JsonValue]
    render: Render = render_as_text
    presentation_meta: Project | None = None


def _finite_positive(instance: ToolDefinition, _attribute: object, value: float | None) -> None:
    if value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not number or not math.isfinite(value) or value <= 0:
        msg = f'tool "{instance.name}" timeoutMs must be a positive finite number, got {value!r}'
        raise RegistrationError(msg)


@attrs.frozen(eq=False)
class ToolDefinition:
    """A tool: what the model sees of it, how its calls are checked, what they touch, and its body.

    Make one with ``@tool``, ``define_tool`` or ``define_raw_tool``; they fill in the compiled parts.

    Attributes:
        name: As the model calls it; not empty.
        description: For the model.
        parameters: JSON Schema of the arguments; an object schema, frozen.
        output: Schema, rendering and metadata of its value; the schema is frozen.
        bind: How the body is reached.
        check_arguments: Lists every violation of raw arguments, in schema order.
        check_value: Lists every violation of a value against ``output.schema``.
        concurrency: ``Claims``, a bool (``True`` means ``PARALLEL``), or a synchronous pure function of the raw
            arguments returning ``True``, ``False`` or ``Claims``. ``None`` and anything unclear mean exclusive.
        timeout_ms: The budget that ``policies.Deadline`` enforces, in milliseconds, or ``None``.
        finalize_content: ``(call, outcome)`` to new content, or ``None`` to keep it; once for every outcome.
        present_call: ``arguments`` to JSON for a user interface; never raises out (see ``presented_call``).
        present_result: ``(arguments, outcome)`` to JSON for a user interface.
        unstructure: Turns the body's value into JSON before it is checked, or ``None``.
        takes_run: Whether the body gets a ``RunContext``.
        is_sync: Whether the body is a plain function, run in a worker thread.
        polls_cancelled: Whether a synchronous body looks at ``run.cancelled``.
        idempotent: Whether a call made twice in a row does what it does once, and gives the same result. Nothing is
            repeated because of it; it is for policies that repeat, and ``quiesce.testing`` checks it.

    Source: ``spec/behaviour.md`` B5, B6.
    """

    name: str
    description: str
    parameters: FrozenDict
    output: Output
    bind: Bind
    check_arguments: Callable[[JsonValue], list[str]]
    check_value: Callable[[JsonValue], list[str]]
    concurrency: Concurrency = None
    timeout_ms: float | None = attrs.field(default=None, validator=_finite_positive)
    finalize_content: FinalizeContent | None = None
    present_call: Callable[[Arguments], JsonValue] | None = None
    present_result: Callable[[Arguments, Outcome], JsonValue] | None = None
    unstructure: Callable[[object], object] | None = None
    takes_run: bool = False
    is_sync: bool = False
    polls_cancelled: bool = False
    idempotent: bool = False

    def __attrs_post_init__(self) -> None:
        if not self.name:
            msg = "a tool needs a name that is not empty"
            raise RegistrationError(msg)
        if self.is_sync and self.timeout_ms is not None and not self.polls_cancelled:
            msg = (
                f'tool "{self.name}" is synchronous and has timeout_ms={self.timeout_ms!r}, but a thread cannot be '
                "cancelled from outside: make it async, or poll run.cancelled in it and declare polls_cancelled=True"
            )
            raise RegistrationError(msg)

    def schema(self) -> dict[str, JsonValue]:
        """What the model is shown, detached: name, description and parameters only (B5.6)."""
        return {
            "name": self.name,
            "description": self.description,
            "parameters": snapshot(self.parameters),
        }


def _freeze_schema(schema: Mapping[str, JsonValue], what: str) -> FrozenDict:
    try:
        return cast("FrozenDict", freeze(dict(schema)))
    except NotLosslessError as error:
        msg = f"{what} must be lossless JSON before schema projection: {error}"
        raise RegistrationError(msg) from error


def _check_output(name: str, output: object) -> Output:
    if isinstance(output, Output):
        return output
    if isinstance(output, Mapping):
        given = dict(cast("Mapping[str, Any]", output))
        if "schema" in given and given.keys() <= {"schema", "render", "presentation_meta"}:
            return Output(**given)
    msg = f'tool "{name}" must declare output {{ schema, render, presentationMeta? }}'
    raise TypeError(msg)


def _takes_run(execute: Callable[..., object]) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p for p in inspect.signature(execute).parameters.values() if p.kind in kinds]
    return len(positional) > 1


def _bind_plain(execute: Callable[..., object], *, takes_run: bool) -> Bind:
    def bind(arguments: Arguments, run: RunContext | None) -> Callable[[], object]:
        return partial(execute, arguments, run) if takes_run else partial(execute, arguments)

    return bind


def define_tool(  # noqa: PLR0913 - each option is a field of a definition, by keyword
    name: str,
    *,
    description: str,
    parameters: Mapping[str, Mapping[str, JsonValue]],
    output: Output | Mapping[str, Any],
    execute: Callable[..., Awaitable[object] | object],
    is_concurrency_safe: bool | Callable[[Arguments], object] | None = None,
    claims: Claims | Callable[[Arguments], object] | None = None,
    timeout_ms: float | None = None,
    finalize_content: FinalizeContent | None = None,
    present_call: Callable[[Arguments], JsonValue] | None = None,
    present_result: Callable[[Arguments, Outcome], JsonValue] | None = None,
    polls_cancelled: bool = False,
    idempotent: bool = False,
) -> ToolDefinition:
    """Define a tool explicitly, with the schema DSL.

    Args:
        name: As the model calls it.
        description: For the model.
        parameters: Property name to DSL node; ``{"path": {"type": "string", "required": True}}``.
        output: An ``Output`` or a mapping of its fields; its schema is a DSL node.
        execute: The body: ``(arguments)`` or ``(arguments, run)``, async, or sync for a worker thread. The
            arguments are a frozen JSON object.
        is_concurrency_safe: Whether a call may overlap its siblings, or a function of the arguments that says so.
        claims: What a call touches, or a function of the arguments; not together with ``is_concurrency_safe``.
        timeout_ms: Budget in milliseconds for ``policies.Deadline``.
        finalize_content: See ``ToolDefinition``.
        present_call: See ``ToolDefinition``.
        present_result: See ``ToolDefinition``.
        polls_cancelled: See ``ToolDefinition``.
        idempotent: See ``ToolDefinition``.

    Raises:
        JsonSchemaError: A schema lies outside the DSL.
        RegistrationError: Another field is unusable.
        TypeError: ``output`` is missing or not of its form.
    """
    if is_concurrency_safe is not None and claims is not None:
        msg = f'define_tool("{name}"): give is_concurrency_safe or claims, not both'
        raise RegistrationError(msg)
    given = _check_output(name, output)
    parameter_schema = parameters_to_json_schema(parameters)
    output_schema = value_to_json_schema(given.schema)
    takes_run = _takes_run(execute)
    return ToolDefinition(
        name=name,
        description=description,
        parameters=_freeze_schema(parameter_schema, f'tool "{name}" parameters'),
        output=attrs.evolve(given, schema=_freeze_schema(output_schema, f'tool "{name}" output schema')),
        bind=_bind_plain(execute, takes_run=takes_run),
        check_arguments=_arguments_checker(compile_validator(parameter_schema)),
        check_value=_value_checker(compile_validator(output_schema)),
        concurrency=claims if is_concurrency_safe is None else is_concurrency_safe,
        timeout_ms=timeout_ms,
        finalize_content=finalize_content,
        present_call=present_call,
        present_result=present_result,
        takes_run=takes_run,
        is_sync=not is_async_callable(execute),
        polls_cancelled=polls_cancelled,
        idempotent=idempotent,
    )


def define_raw_tool(  # noqa: PLR0913 - as above
    name: str,
    *,
    description: str,
    parameters: Mapping[str, JsonValue],
    execute: Callable[..., Awaitable[object] | object],
    output: Output | None = None,
    concurrency: Concurrency = None,
    timeout_ms: float | None = None,
    polls_cancelled: bool = False,
    idempotent: bool = False,
) -> ToolDefinition:
    """Define a tool whose parameters are somebody else's JSON Schema, such as an MCP server's.

    Args:
        name: As the model calls it.
        description: For the model.
        parameters: JSON Schema in any dialect that ``jsonschema`` knows; checked here, and used to validate the
            arguments under its own dialect. Remote references are refused.
        execute: The body, as for ``define_tool``.
        output: Its schema is JSON Schema in the enforced subset; any JSON by default.
        concurrency: See ``ToolDefinition``.
        timeout_ms: Budget in milliseconds for ``policies.Deadline``.
        polls_cancelled: See ``ToolDefinition``.
        idempotent: See ``ToolDefinition``.

    Raises:
        RegistrationError: The schema is not valid under its dialect.
        JsonSchemaError: The output schema lies outside the subset.
    """
    given = Output({}) if output is None else output
    violations = check_schema(given.schema)
    if violations:
        raise JsonSchemaError(violations)
    takes_run = _takes_run(execute)
    frozen = _freeze_schema(parameters, f'tool "{name}" parameters')
    return ToolDefinition(
        name=name,
        description=description,
        parameters=frozen,
        output=attrs.evolve(given, schema=_freeze_schema(given.schema, f'tool "{name}" output schema')),
        bind=_bind_plain(execute, takes_run=takes_run),
        check_arguments=compile_raw_validator(frozen),
        check_value=_value_checker(compile_validator(given.schema)),
        concurrency=concurrency,
        timeout_ms=timeout_ms,
        takes_run=takes_run,
        is_sync=not is_async_callable(execute),
        polls_cancelled=polls_cancelled,
        idempotent=idempotent,
    )


def _arguments_checker(validate: Validator) -> Callable[[JsonValue], list[str]]:
    return partial(validate, path="")


def _value_checker(validate: Validator) -> Callable[[JsonValue], list[str]]:
    return partial(validate, path="value")


def is_async_callable(function: Callable[..., object]) -> bool:
    """Whether calling ``function`` gives an awaitable: a coroutine function, also behind partials or ``__call__``."""
    while isinstance(function, partial):
        function = function.func
    call = getattr(function, "__call__", None)  # noqa: B004 - the method itself is wanted
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def soft_present(present: Callable[[], JsonValue]) -> JsonValue:
    """What a presenter returns, or ``None`` if it raises: presenters also run on replay of old data (B5.4)."""
    try:
        return present()
    except Exception:  # noqa: BLE001 - a presenter must not be able to fail a call or a replay
        return None


def check_valid(definition: ToolDefinition, arguments: JsonValue) -> Arguments:
    """The arguments if they are valid.

    Raises:
        ToolArgsError: With every violation.
    """
    violations = definition.check_arguments(arguments)
    if violations:
        raise ToolArgsError.of(violations)
    return cast("Arguments", arguments)
