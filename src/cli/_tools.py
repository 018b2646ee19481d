"""``quiesce tools``."""

from __future__ import annotations

from typing import Any, cast

from ..adapters import encode
from ..registry import EXCLUSIVE, INDEPENDENT, PARALLEL, ToolDefinition
from ..tools import builtin_tools

__all__ = ["show_tools"]


def show_tools(*, schemas: bool) -> None:
    """Print the built-in tools, or the schemas that a model is shown."""
    tools = builtin_tools(".")
    if schemas:
        print(encode([tool.schema() for tool in tools], pretty=True))
        return
    for tool in tools:
        print(f"{tool.name}  ({class_of(tool)})")
        print(f"    {tool.description.splitlines()[0]}")
        for name, kind, required in parameters_of(tool):
            print(f"    {name}{'*' if required else ''}: {kind}")


def class_of(tool: ToolDefinition) -> str:
    """How calls of a tool overlap, in a word or two."""
    declared = tool.concurrency
    if callable(declared):
        return "depends on its arguments"
    if declared is True or declared == PARALLEL:
        return "parallel"
    if declared in (None, False, EXCLUSIVE):
        return "exclusive"
    return "independent" if declared == INDEPENDENT else "keyed"


def parameters_of(tool: ToolDefinition) -> list[tuple[str, str, bool]]:
    """Name, type and whether it is required, of each parameter in order."""
    schema = cast("dict[str, Any]", tool.parameters)
    required = schema.get("required", ())
    return [
        (name, str(node.get("type", "any")), name in required) for name, node in schema.get("properties", {}).items()
    ]
