"""The events of a journal: frozen values, and their JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast, get_origin

import attrs
import cattrs

from ..registry import ANY, Claims, DeniedBy, Effect, ErrorInfo, HookSpan, JsonValue, Keys, Timings, Wait

__all__ = [
    "BatchEnd",
    "BatchStart",
    "BatchStatus",
    "CallRequest",
    "Event",
    "ToolCallStarted",
    "ToolResult",
    "event_from_json",
    "event_to_json",
]

Json: TypeAlias = Annotated[JsonValue, "checked and frozen before it gets here, and kept as it is"]
Durability: TypeAlias = Literal["settled", "dispatch"]
BatchStatus: TypeAlias = Literal["completed", "cancelled", "drained", "interrupted", "fault", "repaired"]


@attrs.frozen
class CallRequest:
    """One call as the model asked for it.

    Attributes:
        index: Its place in the batch, from 0.
        call_id: The provider's label.
        name: The tool's name.
        arguments: The model's raw argument text, or the parsed arguments if there was no text.
    """

    index: int
    call_id: str
    name: str
    arguments: Json


@attrs.frozen
class BatchStart:
    """``batch/start``: a batch begins; nothing of it has run.

    Attributes:
        batch: The batch's identity, unique across processes.
        time: Seconds on trio's clock; the other times of the batch are on the same clock.
        wall_time: Seconds since the epoch at that moment.
        durability: ``settled`` or ``dispatch``: when the journal is flushed.
        max_parallel: The size of the pool.
        calls: All calls in model order; of a stream, whose calls come one by one, none.
    """

    type: ClassVar[str] = "batch/start"
    batch: str
    time: float
    wall_time: float
    durability: Durability
    max_parallel: int
    calls: tuple[CallRequest, ...]


@attrs.frozen
class ToolCallStarted:
    """``tool/call``: a call's turn has come; after this its body may run.

    Attributes:
        batch: The batch of the outermost call.
        key: The call's identity: ``<batch>:<index>``, for a sub-call ``<parent>:<index>``.
        time: Seconds on trio's clock.
        request: The call.
        parent: The key of the call whose body made it, or ``None``.
        root: The key of the outermost call; its own if it has no parent.
    """

    type: ClassVar[str] = "tool/call"
    batch: str
    key: str
    time: float
    request: CallRequest
    parent: str | None
    root: str


@attrs.frozen
class ToolResult:
    """``tool/result``: a call is committed. It holds all of its outcome.

    Attributes:
        batch: The batch of the outermost call.
        key: The call's identity.
        time: Seconds on trio's clock.
        index: Its place in its lane.
        call_id: The provider's label.
        name: The tool's name.
        is_error: Whether it failed.
        content: What the model sees, as JSON blocks in order.
        effect: What is known of its effects.
        value: The value of a success.
        error: Message, name and code of a failure, else ``None``.
        denied_by: Who denied it, or ``None``.
        late_value: The value that arrived during a cancel, or ``None``.
        meta: Metadata for a user interface, or ``None``.
        contexts: Extra contexts for the next request, in order.
        concludes_turn: Whether it declared the turn complete.
        parent: The key of the call whose body made it, or ``None``.
        root: The key of the outermost call.
        timings: When it passed each point.
        hooks: When its hooks ran.
        waited: Why it could not start at its turn, or ``None``.
        claims: What it claimed from its preparation on, or ``None`` if it was never prepared.
        cancelled_at: When it alone was cancelled (``cancel_call``, or the scope around a sub-call), on trio's clock,
            or ``None``.
    """

    type: ClassVar[str] = "tool/result"
    batch: str
    key: str
    time: float
    index: int
    call_id: str
    name: str
    is_error: bool
    content: tuple[Json, ...]
    effect: Effect
    value: Json
    error: ErrorInfo | None
    denied_by: DeniedBy | None
    late_value: Json
    meta: Json
    contexts: tuple[Json, ...]
    concludes_turn: bool
    parent: str | None
    root: str
    timings: Timings
    hooks: tuple[HookSpan, ...]
    waited: Wait | None
    claims: Claims | None = None
    cancelled_at: float | None = None


@attrs.frozen
class BatchEnd:
    """``batch/end``: every call of the batch is committed, or a fault stopped it.

    Attributes:
        batch: The batch.
        time: Seconds on trio's clock.
        status: ``completed``, ``cancelled``, ``drained`` (what ran was let finish), ``interrupted`` (Ctrl-C or the
            like), ``fault``, or ``repaired`` (the process ended before the batch did, and ``repair`` closed it).
        cancelled_at: When it was cancelled, on trio's clock, or ``None``.
        reason: Why it was cancelled or drained, if whoever did it said so.
    """

    type: ClassVar[str] = "batch/end"
    batch: str
    time: float
    status: BatchStatus
    cancelled_at: float | None
    reason: str | None


Event: TypeAlias = BatchStart | ToolCallStarted | ToolResult | BatchEnd

_KINDS: Mapping[str, type[Event]] = {kind.type: kind for kind in (BatchStart, ToolCallStarted, ToolResult, BatchEnd)}


def _make_converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True, unstruct_collection_overrides={tuple: list})
    converter.register_structure_hook_func(_is_json, lambda value, _: value)
    converter.register_unstructure_hook_func(_is_json, lambda value: value)
    converter.register_structure_hook(Claims, lambda value, _: _claims_from_json(value))
    converter.register_unstructure_hook(Claims, _claims_to_json)
    return converter


def _claims_to_json(claims: Claims) -> dict[str, JsonValue]:
    return {"reads": _keys_to_json(claims.reads), "writes": _keys_to_json(claims.writes)}


def _keys_to_json(keys: Keys) -> JsonValue:
    # Sorted, so that one journal has one text; a set of keys is a list, so a key "ANY" is no ambiguity.
    return "ANY" if keys is ANY else cast("JsonValue", sorted(keys))


def _claims_from_json(data: Mapping[str, Any]) -> Claims:
    reads, writes = (ANY if data[side] == "ANY" else data[side] for side in ("reads", "writes"))
    if len(data) > len(("reads", "writes")):
        msg = f"claims have reads and writes, got {sorted(data)}"
        raise ValueError(msg)
    return Claims(reads=reads, writes=writes)


def _is_json(kind: Any) -> bool:
    return get_origin(kind) is Annotated and kind.__metadata__ == Json.__metadata__  # type: ignore[attr-defined]


_converter = _make_converter()


def event_to_json(event: Event) -> dict[str, JsonValue]:
    """The event as JSON, with its ``type`` first; frozen values inside stay frozen."""
    return {"type": event.type, **cast("dict[str, JsonValue]", _converter.unstructure(event))}


def event_from_json(data: Mapping[str, Any]) -> Event:
    """Read an event that ``event_to_json`` wrote.

    Raises:
        ValueError: It is of an unknown type, or a field is missing, unknown or of the wrong kind.
    """
    fields = dict(data)
    kind = _KINDS.get(fields.pop("type", None) or "")
    if kind is None:
        msg = f"unknown journal event type {data.get('type')!r}; known types: {', '.join(_KINDS)}"
        raise ValueError(msg)
    try:
        return _converter.structure(fields, kind)
    except (cattrs.BaseValidationError, TypeError, KeyError) as error:
        msg = f"malformed {kind.type} event: {'; '.join(cattrs.transform_error(error))}"
        raise ValueError(msg) from error
