"""What a runtime gives to all its batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs
import trio

from ..actors import Pipeline
from ..journal import Journal
from ..registry import Registry

__all__ = ["Services"]


def _at_least_one(_instance: object, attribute: attrs.Attribute[int], value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        msg = f"{attribute.name} must be a positive integer, got {value!r}"
        raise ValueError(msg)


def _limits(_instance: object, _attribute: object, value: Mapping[str, int]) -> None:
    for tool, limit in value.items():
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            msg = f"limits[{tool!r}] must be a positive integer, got {limit!r}"
            raise ValueError(msg)


def _positive_seconds(_instance: object, attribute: attrs.Attribute[float | None], value: float | None) -> None:
    if value is not None and not value > 0:
        msg = f"{attribute.name} must be a number of seconds above 0, or None, got {value!r}"
        raise ValueError(msg)


@attrs.frozen
class Services:
    """See ``open_runtime`` for the options.

    Attributes:
        registry: Tools and hooks, live.
        journal: Where everything is recorded.
        flushes: Whether the journal is somebody's own, and so may have something to make durable.
        limiter: For worker threads.
        max_parallel: Size of each lane's pool.
        limits: Most running calls a tool.
        durability: When the journal is flushed.
        stall_after: Seconds after which a running call is reported, or ``None``.
        pipeline: The four stages.
    """

    registry: Registry
    journal: Journal
    flushes: bool
    limiter: trio.CapacityLimiter
    max_parallel: int = attrs.field(default=10, validator=_at_least_one)
    limits: Mapping[str, int] = attrs.field(factory=dict[str, int], validator=_limits)
    durability: Literal["settled", "dispatch"] = attrs.field(
        default="settled", validator=attrs.validators.in_(("settled", "dispatch"))
    )
    stall_after: float | None = attrs.field(default=None, validator=_positive_seconds)
    pipeline: Pipeline = attrs.field(factory=Pipeline)
