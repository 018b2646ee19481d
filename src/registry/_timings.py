"""When things happened to a call, and what it waited for: what the journal keeps and a waterfall is drawn from."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

__all__ = ["HookSpan", "Timings", "Wait", "WaitKind"]


@attrs.frozen
class Timings:
    """When a call passed each point, in seconds on trio's clock; ``None`` if it never did.

    Attributes:
        queued: It was handed in.
        prepared: Its pre hooks, approval and guards were over.
        started: Its dispatch began.
        invoked: Its body was invoked for the first time.
        settled: It had exactly one outcome.
        committed: Its outcome was recorded.
    """

    queued: float
    prepared: float | None = None
    started: float | None = None
    invoked: float | None = None
    settled: float | None = None
    committed: float | None = None


@attrs.frozen
class HookSpan:
    """When the hooks of one kind ran for a call.

    Attributes:
        kind: ``pre`` (approval included), ``around`` (the body included) or ``post``.
        start: Seconds on trio's clock.
        end: Seconds on trio's clock.
    """

    kind: Literal["pre", "around", "post"]
    start: float
    end: float


WaitKind: TypeAlias = Literal["conflict", "pool", "limit", "ready_bound"]


@attrs.frozen
class Wait:
    """Why a call could not be started at its turn.

    Attributes:
        kind: ``conflict``, ``pool`` (no place), ``limit`` (of its tool) or ``ready_bound`` (too many wait ready).
        calls: The calls it conflicted with when first considered, by index in model order; else empty.
    """

    kind: WaitKind
    calls: tuple[int, ...] = ()
