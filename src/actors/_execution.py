"""One call on its way through the pipeline: everything about it that changes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import attrs
import trio

from ..registry import (
    CallToken,
    Claims,
    Effect,
    HookSpan,
    JsonValue,
    Outcome,
    Scope,
    Timings,
    ToolCall,
    ToolDefinition,
)

if TYPE_CHECKING:
    from ._deadline import OpenDeadline
    from ._host import Host

__all__ = ["Execution", "Identity"]


class Identity(CallToken):
    """A call's token, with the key that the journal writes for it.

    Attributes:
        key: ``<batch>:<index>``; for a sub-call ``<key of its parent>:<index>``.
    """

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key

    def __repr__(self) -> str:
        return f"<call {self.key}>"


@attrs.define(eq=False)
class Execution:
    """See the module. Owned by the batch; hooks and bodies see it through read-only views.

    Attributes:
        call: As handed in.
        index: Its place in its lane, from 0.
        identity: Its token.
        host: The batch that runs it.
        parent: The token of the call whose body made it, or ``None``.
        root_call_id: The label of the outermost call.
        root_key: The journal key of the outermost call.
        queued_at: When it was handed in, in seconds on trio's clock; the other ``_at`` fields likewise.
        arguments: Frozen, once prepared.
        claims: What it holds from its preparation on; ``None`` if it was never prepared.
        definition: The tool visible when it was prepared; its ``finalize_content`` applies.
        invoked: How often the body was invoked, over all attempts.
        returned: How often it returned a value.
        sub_calls: How many further calls its body made, over all attempts.
        contexts: What the body deferred, in order.
        concludes: Whether the body declared the turn complete.
        late_value: The last value that a cancel overtook.
        outcome: What dispatch or preparation gave; ``None`` before.
        post_allowed: Whether post hooks run for ``outcome``.
        cancel_requested: Whether this call was cancelled, by the caller or alone.
        cancel_reason: Why, if known.
        cancelled_at: When, in seconds on trio's clock.
        body_scope: The scope around a running body, if it has one of its own.
        cancel_event: Set by the cancel, if anyone waits for it.
        scopes: Open cancel scopes that a cancel of the call must reach.
        deadlines: Open deadlines of around hooks, the outermost first.
        spans: When its hooks ran.
        task: The task that runs its dispatch.
        thread: The identity of the worker thread that runs its body, or ``None``.
    """

    call: ToolCall
    index: int
    identity: Identity
    host: Host
    root_call_id: str
    root_key: str
    queued_at: float
    parent: Identity | None = None
    arguments: JsonValue = None
    claims: Claims | None = None
    definition: ToolDefinition | None = None
    invoked: int = 0
    returned: int = 0
    sub_calls: int = 0
    contexts: list[JsonValue] = attrs.field(factory=list[JsonValue])
    concludes: bool = False
    late_value: JsonValue = None
    outcome: Outcome | None = None
    post_allowed: bool = True
    cancel_requested: bool = False
    cancel_reason: str | None = None
    cancelled_at: float | None = None
    scopes: list[trio.CancelScope] = attrs.field(factory=list[trio.CancelScope])
    deadlines: list[OpenDeadline] = attrs.field(factory=list["OpenDeadline"])
    spans: list[HookSpan] = attrs.field(factory=list[HookSpan])
    prepared_at: float | None = None
    started_at: float | None = None
    invoked_at: float | None = None
    settled_at: float | None = None
    task: trio.lowlevel.Task | None = None
    thread: int | None = None
    cancel_event: trio.Event | None = None
    body_scope: trio.CancelScope | None = None
    _minted: list[tuple[Outcome, bool]] = attrs.field(factory=list[tuple[Outcome, bool]])

    @property
    def agent(self) -> Scope | None:
        """The scope whose tools and hooks apply."""
        return self.call.agent

    @property
    def effect(self) -> Effect:
        """What is known of the effects of its body so far."""
        if not self.invoked:
            return Effect.NOT_STARTED
        return Effect.COMPLETED if self.returned == self.invoked else Effect.UNKNOWN

    def note_invoked(self, now: float) -> None:
        """The body is called next, without a checkpoint in between."""
        self.invoked += 1
        if self.invoked_at is None:
            self.invoked_at = now

    def timings(self, committed_at: float) -> Timings:
        """When it passed each point."""
        return Timings(
            self.queued_at, self.prepared_at, self.started_at, self.invoked_at, self.settled_at, committed_at
        )

    def mint(self, outcome: Outcome, *, post_allowed: bool = True) -> Outcome:
        """Vouch for an outcome: a wrapper that returns this very object returns a checked one (C6.10)."""
        self._minted.append((outcome, post_allowed))
        return outcome

    def minted(self, outcome: Outcome) -> bool | None:
        """Whether post hooks run for a vouched outcome; ``None`` if it was not minted for this call."""
        for known, post_allowed in self._minted:
            if known is outcome:
                return post_allowed
        return None

    def cancel(self, reason: str | None) -> None:
        """Cancel whatever runs for this call; only the first reason counts."""
        if not self.cancel_requested:
            self.cancel_requested = True
            self.cancel_reason = reason
            self.cancelled_at = trio.current_time()
        for scope in self.scopes:
            scope.cancel(reason)
        if self.cancel_event is not None:
            self.cancel_event.set()

    def cancel_body(self) -> None:
        """End the body that a hook left behind; the call itself was not cancelled by anyone."""
        if self.body_scope is not None:
            self.body_scope.cancel("its around hook ended before it")

    def next_deadline(self) -> float:
        """The earliest of the open deadlines on trio's clock; infinity if there is none."""
        return min((deadline.at for deadline in self.deadlines), default=math.inf)
