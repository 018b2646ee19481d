"""Terse registries for tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from quiesce import PARALLEL, Claims, Output, Registry, ToolCall, define_tool

Body = Callable[..., Awaitable[object] | object]


def registry_of(claims: Claims = PARALLEL, **bodies: Body) -> Registry:
    """A registry with a tool for each body, taking any arguments and giving any JSON."""
    registry = Registry()
    add_tools(registry, claims, **bodies)
    return registry


def add_tools(registry: Registry, claims: Claims = PARALLEL, **bodies: Body) -> None:
    """Register a tool for each body."""
    for name, body in bodies.items():
        registry.register(
            define_tool(
                name, description="d", parameters={}, output=Output({"type": "json"}), execute=body, claims=claims
            )
        )


def calls_of(*names: str, **arguments: Any) -> list[ToolCall]:
    """Calls c0, c1, ... of these tools."""
    return [ToolCall(f"c{index}", name, dict(arguments)) for index, name in enumerate(names)]
