"""The read-only views of a call that hooks get."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ..registry import CallToken, Deadline, Failure, JsonValue, Outcome, Scope
from ._cancellation import cancelled_here
from ._contract import replaced_value
from ._deadline import open_deadline
from ._execution import Execution
from ._failures import failure

__all__ = ["AroundView", "View"]


class View:
    """What pre hooks, guards, post hooks and observers see; see ``registry.CallView``."""

    __slots__ = ("_execution",)

    def __init__(self, execution: Execution) -> None:
        self._execution = execution

    def __repr__(self) -> str:
        return f"<call {self.call_id!r} of {self.name!r}>"

    @property
    def token(self) -> CallToken:
        """See ``CallView``."""
        return self._execution.identity

    @property
    def call_id(self) -> str:
        """See ``CallView``."""
        return self._execution.call.call_id

    @property
    def root_call_id(self) -> str:
        """See ``CallView``."""
        return self._execution.root_call_id

    @property
    def name(self) -> str:
        """See ``CallView``."""
        return self._execution.call.name

    @property
    def arguments(self) -> JsonValue:
        """See ``CallView``."""
        return self._execution.arguments

    @property
    def agent(self) -> Scope | None:
        """See ``CallView``."""
        return self._execution.agent

    @property
    def parent(self) -> CallToken | None:
        """See ``CallView``."""
        return self._execution.parent

    @property
    def cancelled(self) -> bool:
        """See ``CallView``."""
        return self._execution.cancel_requested or cancelled_here()

    @property
    def cancel_reason(self) -> str | None:
        """See ``CallView``."""
        return self._execution.cancel_reason or self._execution.host.caller_cancel.reason


class AroundView(View):
    """What around hooks see; see ``registry.DispatchView``."""

    __slots__ = ()

    @property
    def cancelled(self) -> bool:
        """Whether the caller cancelled; a deadline of a wrapper's own does not count."""
        return self._execution.cancel_requested

    def succeed(self, value: object) -> Outcome:
        """See ``DispatchView``."""
        outcome = replaced_value(self._execution, value)
        # A short circuit that cannot be made into a success ends like a wrapper that raised: without post hooks.
        return self._execution.mint(outcome, post_allowed=not isinstance(outcome, Failure))

    def fail(self, message: str, code: str | None = None, *, name: str = "ToolError") -> Outcome:
        """See ``DispatchView``."""
        return self._execution.mint(failure(self._execution, message, name=name, code=code))

    def deadline(self, seconds: float) -> AbstractContextManager[Deadline]:
        """See ``DispatchView``."""
        return open_deadline(self._execution, seconds)
