"""The output contract: from a tool's value to a success, or to the failure that says what is wrong with it."""

from __future__ import annotations

from typing import cast

from ..errors import NotLosslessError, ToolError, ToolNotFoundError, ToolOutputError
from ..registry import ContentBlock, FrozenDict, JsonValue, Outcome, Success, ToolDefinition, as_content, freeze
from ._execution import Execution
from ._failures import error_text, failure_from

__all__ = ["replaced_value", "success_of", "unknown_tool"]


def unknown_tool(execution: Execution) -> ToolNotFoundError:
    """The error of a call whose tool is not visible, which a restricted tool is not either (C4.5)."""
    return ToolNotFoundError(f'unknown tool "{execution.call.name}"')


def replaced_value(execution: Execution, value: object) -> Outcome:
    """An outcome with a value that the body did not return: checked against the tool that is visible now.

    Returns:
        A success, or a failure with ``UNKNOWN_TOOL`` or ``INVALID_TOOL_OUTPUT``.
    """
    definition = execution.host.registry.get(execution.call.name, execution.agent)
    try:
        if definition is None:
            raise unknown_tool(execution)
        return success_of(execution, definition, value)
    except ToolError as error:
        return failure_from(execution, error)


def success_of(execution: Execution, definition: ToolDefinition, value: object) -> Success:
    """Check, freeze and render a value.

    Raises:
        ToolOutputError: It breaks the contract.

    Source: ``spec/behaviour.md`` B6.
    """
    frozen = _frozen(definition, value)
    violations = definition.check_value(frozen)
    if violations:
        raise _broken(definition, *violations)
    return Success(
        call_id=execution.call.call_id,
        name=execution.call.name,
        index=execution.index,
        value=frozen,
        content=_render(definition, execution.arguments, frozen),
        meta=None if execution.parent is not None else _project(definition, execution.arguments, frozen),
        effect=execution.effect,
    )


def _frozen(definition: ToolDefinition, value: object) -> JsonValue:
    try:
        plain = value if definition.unstructure is None else definition.unstructure(value)
        return freeze(plain)
    except NotLosslessError as error:
        where = f"value{error.path if error.path.startswith('[') or not error.path else '.' + error.path}"
        raise _broken(definition, f"value is not lossless JSON: {where}: {error.problem}") from error
    except Exception as error:
        raise _broken(definition, f"value snapshot failed: {error_text(error)}") from error


def _render(definition: ToolDefinition, arguments: JsonValue, value: JsonValue) -> tuple[ContentBlock, ...]:
    try:
        return as_content(definition.output.render(cast("FrozenDict", arguments), value))
    except NotLosslessError as error:
        raise _broken(definition, "output.render returned non-lossless JSON") from error
    except Exception as error:
        raise _broken(definition, f"output.render failed: {error_text(error)}") from error


def _project(definition: ToolDefinition, arguments: JsonValue, value: JsonValue) -> JsonValue:
    project = definition.output.presentation_meta
    if project is None:
        return None
    try:
        return freeze(project(cast("FrozenDict", arguments), value))
    except NotLosslessError as error:
        raise _broken(definition, "output.presentationMeta returned non-lossless JSON") from error
    except Exception as error:
        raise _broken(definition, f"output.presentationMeta failed: {error_text(error)}") from error


def _broken(definition: ToolDefinition, *violations: str) -> ToolOutputError:
    return ToolOutputError(f'tool "{definition.name}" returned invalid output: {"; ".join(violations)}')
