"""The views of a running call that hooks and bodies get; ``actors`` implements them.

They are protocols here because the registry names them in hook and tool signatures and must not depend on the
layer that runs calls.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from ._json import JsonValue
from ._values import Outcome

if TYPE_CHECKING:
    from ._decisions import ApprovalOutcome, PostDecision, PreDecision
    from ._scopes import Scope

__all__ = [
    "ApprovalRequest",
    "Approver",
    "AroundHook",
    "CallToken",
    "CallView",
    "ChangeObserver",
    "Deadline",
    "DispatchView",
    "Guard",
    "PendingCall",
    "PostHook",
    "PreHook",
    "ResultObserver",
    "RunContext",
]


class CallToken:
    """The identity of one call: opaque, unique to a batch and a place in it."""

    __slots__ = ()


class CallView(Protocol):
    """What every hook sees of a call. Read-only."""

    @property
    def token(self) -> CallToken:
        """The call's identity; provider ids may repeat, this does not."""
        ...

    @property
    def call_id(self) -> str:
        """The provider's label."""
        ...

    @property
    def root_call_id(self) -> str:
        """The label of the outermost call: its own, or that of the call that made it."""
        ...

    @property
    def name(self) -> str:
        """The tool's name as the model wrote it."""
        ...

    @property
    def arguments(self) -> JsonValue:
        """The frozen arguments."""
        ...

    @property
    def agent(self) -> Scope | None:
        """The scope whose tools and hooks apply."""
        ...

    @property
    def parent(self) -> CallToken | None:
        """The token of the call whose body made this one, or ``None``."""
        ...

    @property
    def cancelled(self) -> bool:
        """Whether the caller has cancelled this call."""
        ...

    @property
    def cancel_reason(self) -> str | None:
        """Why, if the canceller said so."""
        ...


class Deadline(Protocol):
    """A deadline that an around hook holds open."""

    @property
    def fired(self) -> bool:
        """Whether it ran out before the caller's cancel and before every deadline around it."""
        ...


class DispatchView(CallView, Protocol):
    """What around hooks see: the call, and the means to answer for it."""

    def succeed(self, value: object) -> Outcome:
        """An outcome with ``value`` in place of the body's, checked and rendered by the tool's contract.

        Returns:
            A ``Success``, or a ``Failure`` if the value is invalid or the tool is gone.
        """
        ...

    def fail(self, message: str, code: str | None = None, *, name: str = "ToolError") -> Outcome:
        """A failure with this message, code and error name in place of whatever came back."""
        ...

    def deadline(self, seconds: float) -> AbstractContextManager[Deadline]:
        """Open a deadline around ``proceed``: ``with call.deadline(2.5) as deadline: ...``.

        Args:
            seconds: From now, on trio's clock; more than 0.
        """
        ...


@runtime_checkable
class RunContext(CallView, Protocol):
    """What a body gets when it asks for it: a parameter annotated ``RunContext`` is injected."""

    async def wait_cancelled(self) -> None:
        """Return once this call is cancelled, also inside a shielded scope."""
        ...

    def defer_context(self, context: JsonValue) -> None:
        """Add an extra context for the next request, after this call's result, even if the body fails later.

        Args:
            context: Text, or any lossless JSON.

        Raises:
            NotLosslessError: It is not lossless JSON.
        """
        ...

    def conclude_turn(self) -> None:
        """Declare the turn complete; honoured only if the call succeeds."""
        ...

    def progress(self, progress: JsonValue) -> None:
        """Tell whoever follows ``batch.events()`` how far the body is. Never blocks; callable from a thread."""
        ...

    async def call(self, name: str, arguments: JsonValue = None, *, call_id: str | None = None) -> Outcome:
        """Run a further call inside this one and return its outcome once it is committed.

        Cancelling the scope around it cancels that call and settles it first.

        Args:
            name: The tool's name, looked up as the calling agent sees it.
            arguments: A JSON object; ``{}`` if omitted.
            call_id: A label; ``<this call's id>:<n>`` if omitted.
        """
        ...

    def submit(self, name: str, arguments: JsonValue = None, *, call_id: str | None = None) -> PendingCall:
        """Hand in a further call without waiting; the order of the calls is the order of their results."""
        ...


class PendingCall(Protocol):
    """A sub-call handed in with ``RunContext.submit``."""

    @property
    def call_id(self) -> str:
        """Its label."""
        ...

    async def outcome(self) -> Outcome:
        """Wait for its commit and return its outcome. Cancelling this wait leaves the call running."""
        ...

    def cancel(self, reason: str | None = None) -> bool:
        """Cancel that call alone; ``False`` if it has settled."""
        ...


class ApprovalRequest(Protocol):
    """What an approver is asked. It carries no arguments (D5.10)."""

    @property
    def call(self) -> CallView:
        """The call that waits."""
        ...

    @property
    def tool_name(self) -> str:
        """The tool's name."""
        ...

    @property
    def call_id(self) -> str:
        """The provider's label."""
        ...

    @property
    def agent(self) -> Scope:
        """The agent whose call it is."""
        ...

    @property
    def reason(self) -> str | None:
        """Why the pre hook asks."""
        ...


PreHook: TypeAlias = "Callable[[CallView, Callable[[], Awaitable[PreDecision]]], Awaitable[PreDecision]]"
Guard: TypeAlias = Callable[[CallView], str | None]
AroundHook: TypeAlias = Callable[[DispatchView, Callable[[], Awaitable[Outcome]]], Awaitable[Outcome]]
PostHook: TypeAlias = "Callable[[CallView, Outcome, Callable[[], Awaitable[PostDecision]]], Awaitable[PostDecision]]"
ResultObserver: TypeAlias = Callable[[CallView, Outcome], None]
ChangeObserver: TypeAlias = Callable[[], None]
Approver: TypeAlias = (
    "Callable[[ApprovalRequest, Callable[[], Awaitable[ApprovalOutcome]]], Awaitable[ApprovalOutcome | str]]"
)
