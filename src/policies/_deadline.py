"""The deadline policy: a budget for each dispatch, with a code of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from ..errors import RegistrationError, ToolTimeoutError
from ..registry import DispatchView, HookRegistration, Outcome, Registry, Scope

__all__ = ["Deadline"]


def _positive(_instance: object, attribute: attrs.Attribute[float | None], value: float | None) -> None:
    if value is not None and not (isinstance(value, int | float) and 0 < value < float("inf")):  # pyright: ignore[reportUnnecessaryIsInstance]
        msg = f"{attribute.name} must be a positive finite number of seconds, or None, got {value!r}"
        raise RegistrationError(msg)


@attrs.frozen
class Deadline:
    """Fails a call whose budget runs out with ``TOOL_TIMEOUT``: ``Deadline(30).install(registry)``.

    The budget of a call is its tool's ``timeout_ms``, read from the tool that the calling agent sees, else ``default``.
    A call without a budget is left alone. The body is cancelled and awaited: one that ignores the cancel can exceed its
    budget. The first cause wins: after the caller's cancel it stays ``ABORTED``, and once the deadline has fired it
    stays ``TOOL_TIMEOUT``, whatever came back.

    Installed outside a retry hook (before it), the budget covers all attempts; inside, each of them.

    Attributes:
        default: Seconds for tools that declare none, or ``None`` for no budget.
        cap: Most seconds any call may have, or ``None``.

    Source: ``spec/behaviour.md`` D1.
    """

    default: float | None = attrs.field(default=None, validator=_positive)
    cap: float | None = attrs.field(default=None, validator=_positive)

    def install(self, where: Registry | Scope, *, prepend: bool = False) -> HookRegistration[..., object]:
        """Register the policy for all calls, or for those of a scope; returns the handle that removes it."""
        registry = where.registry

        async def deadline(call: DispatchView, proceed: Callable[[], Awaitable[Outcome]]) -> Outcome:
            seconds = self._budget(registry, call)
            if seconds is None:
                return await proceed()
            with call.deadline(seconds) as budget:
                outcome = await proceed()
            if not budget.fired:
                return outcome
            message = f"tool call timed out after {seconds * 1000:.10g}ms"
            return call.fail(message, "TOOL_TIMEOUT", name=ToolTimeoutError.__name__)

        return where.around(deadline, prepend=prepend)

    def _budget(self, registry: Registry, call: DispatchView) -> float | None:
        definition = registry.get(call.name, call.agent)
        declared = None if definition is None or definition.timeout_ms is None else definition.timeout_ms / 1000
        seconds = self.default if declared is None else declared
        if seconds is None or self.cap is None:
            return seconds
        return min(seconds, self.cap)
