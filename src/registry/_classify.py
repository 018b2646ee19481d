"""The class of a call: what it touches, read from its tool and its raw arguments."""

from __future__ import annotations

from typing import cast

from ._claims import EXCLUSIVE, PARALLEL, Claims
from ._definitions import Arguments, ToolDefinition
from ._json import JsonValue

__all__ = ["classify"]


def classify(definition: ToolDefinition | None, arguments: JsonValue) -> Claims:
    """What a call touches.

    Args:
        definition: The visible tool, or ``None`` if there is none.
        arguments: The raw arguments.

    Returns:
        The tool's claims for these arguments. Exclusive whenever that is unclear: an unknown tool, no classifier,
        one that raises or returns something other than exactly ``True``, ``False`` or ``Claims``, or arguments
        that break the schema.

    Source: ``spec/behaviour.md`` C6.23.
    """
    if definition is None:
        return EXCLUSIVE
    declared = definition.concurrency
    if callable(declared):
        if definition.check_arguments(arguments):
            return EXCLUSIVE
        try:
            declared = cast("Claims | bool", declared(cast("Arguments", arguments)))
        except Exception:  # noqa: BLE001 - a classifier that raises makes its call exclusive, nothing else
            return EXCLUSIVE
    elif definition.check_arguments(arguments):
        return EXCLUSIVE
    if isinstance(declared, Claims):
        return declared
    return PARALLEL if declared is True else EXCLUSIVE
