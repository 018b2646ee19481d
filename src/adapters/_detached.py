"""Plain, detached JSON for what leaves quiesce."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ..registry import JsonValue, snapshot
from ._format import Message

__all__ = ["function_parts", "plain_object"]


def plain_object(data: Mapping[str, JsonValue]) -> Message:
    """A plain copy of a frozen JSON object."""
    return cast("Message", snapshot(data))


def function_parts(schema: Mapping[str, JsonValue], parameters_key: str = "parameters") -> Message:
    """Name, description and parameters of a tool, as a request states them.

    Args:
        schema: One of ``registry.schemas()``.
        parameters_key: What the API calls the parameters.
    """
    return {
        "name": schema["name"],
        "description": schema.get("description", ""),
        parameters_key: snapshot(schema["parameters"]),
    }
