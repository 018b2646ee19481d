"""What can be registered, in a registry for all calls or in a scope for its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast, overload

from ..errors import RegistrationError
from ._claims import EXCLUSIVE
from ._context import CallView
from ._definitions import Concurrency, FinalizeContent, Project, Render, ToolDefinition, is_async_callable
from ._json import JsonValue
from ._registration import HookRegistration, Registration
from ._tool import definition_of
from ._values import Outcome

if TYPE_CHECKING:
    from ._registry import Registry
    from ._scopes import Scope

__all__ = ["Registrar"]

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

# The kinds of hooks and whether they are coroutine functions. A synchronous pre hook would block the loop, an
# asynchronous observer would never be awaited; both are refused when they are registered.
HOOK_KINDS = {
    "pre_execute": True,
    "around": True,
    "post_execute": True,
    "approver": True,
    "guard": False,
    "on_result": False,
    "on_change": False,
}


class Decorator(Protocol):
    """What a registration method gives when it is called with options only."""

    def __call__(self, function: F, /) -> F:
        """Register the function and return it unchanged."""
        ...


class Registrar:
    """The registration methods that ``Registry`` and ``Scope`` share.

    A hook method called with a function registers it and returns a handle; called with options only it is a
    decorator that returns the function unchanged. The first hook registered is the outermost of its kind.
    """

    @property
    def registry(self) -> Registry:
        """The registry in which everything is filed."""
        raise NotImplementedError

    def register(self, definition: ToolDefinition) -> Registration:
        """Make a tool visible here and below.

        Raises:
            RegistrationError: A tool of that name is registered in the same place.
        """
        if not isinstance(cast("object", definition), ToolDefinition):
            msg = f"register() takes a ToolDefinition, got {definition!r:.80}; for a plain function use tool()"
            raise TypeError(msg)
        return self.registry.file_tool(self._place, definition)

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        concurrency: Concurrency = EXCLUSIVE,
        timeout_ms: float | None = None,
        render: Render | None = None,
        presentation_meta: Project | None = None,
        finalize_content: FinalizeContent | None = None,
        present_call: Callable[..., JsonValue] | None = None,
        present_result: Callable[..., JsonValue] | None = None,
        polls_cancelled: bool = False,
        idempotent: bool = False,
    ) -> Decorator: ...
    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Register a function as a tool and return it unchanged; see ``quiesce.tool`` for the options."""
        if function is not None:
            self.register(definition_of(function, **options))
            return function

        def decorate(decorated: F) -> F:
            self.register(definition_of(decorated, **options))
            return decorated

        return decorate

    @overload
    def guard(self, hook: Callable[P, str | None], /) -> HookRegistration[P, str | None]: ...
    @overload
    def guard(self, /) -> Decorator: ...
    def guard(self, hook: Any = None, /) -> Any:
        """Register a guard: ``fn(call) -> reason to deny, or None``; synchronous, after pre hooks and approval.

        Guards of the registry come first, then those of the farthest scope. The first reason wins.

        Source: ``spec/behaviour.md`` C5.
        """
        return self._hook("guard", hook, prepend=False)

    @overload
    def pre_execute(self, hook: Callable[P, R], /, *, prepend: bool = False) -> HookRegistration[P, R]: ...
    @overload
    def pre_execute(self, /, *, prepend: bool = False) -> Decorator: ...
    def pre_execute(self, hook: Any = None, /, *, prepend: bool = False) -> Any:
        """Register ``async fn(call, proceed) -> Allow() | Deny(reason) | Ask(reason)``, run before a call starts.

        ``await proceed()`` asks the hooks inside it; the innermost answer is ``Allow()``.

        Args:
            hook: The hook.
            prepend: Make it the outermost.
        """
        return self._hook("pre_execute", hook, prepend=prepend)

    @overload
    def around(self, hook: Callable[P, R], /, *, prepend: bool = False) -> HookRegistration[P, R]: ...
    @overload
    def around(self, /, *, prepend: bool = False) -> Decorator: ...
    def around(self, hook: Any = None, /, *, prepend: bool = False) -> Any:
        """Register ``async fn(call, proceed) -> Outcome``, run around the body, overlapping with other calls.

        ``await proceed()`` runs what is inside and always returns an ``Outcome``; it may be called again after it
        returned. ``call.succeed``, ``call.fail`` and ``call.deadline`` help to answer.

        Args:
            hook: The hook.
            prepend: Make it the outermost.
        """
        return self._hook("around", hook, prepend=prepend)

    @overload
    def post_execute(self, hook: Callable[P, R], /, *, prepend: bool = False) -> HookRegistration[P, R]: ...
    @overload
    def post_execute(self, /, *, prepend: bool = False) -> Decorator: ...
    def post_execute(self, hook: Any = None, /, *, prepend: bool = False) -> Any:
        """Register ``async fn(call, outcome, proceed) -> Accept(...) | Block(...)``, run before a call commits.

        ``await proceed()`` asks the hooks inside it; the innermost answer is ``Accept()``.

        Args:
            hook: The hook.
            prepend: Make it the outermost.
        """
        return self._hook("post_execute", hook, prepend=prepend)

    @overload
    def approver(self, hook: Callable[P, R], /, *, prepend: bool = False) -> HookRegistration[P, R]: ...
    @overload
    def approver(self, /, *, prepend: bool = False) -> Decorator: ...
    def approver(self, hook: Any = None, /, *, prepend: bool = False) -> Any:
        """Register ``async fn(request, proceed) -> ApprovalOutcome``, which answers a pre hook's ``Ask``.

        The first approver that returns decides; ``await proceed()`` hands on to the next. One that raises, or
        answers outside the vocabulary, counts as ``UNAVAILABLE``.

        Args:
            hook: The approver.
            prepend: Ask it first.

        Source: ``spec/behaviour.md`` D5.1, D5.4-D5.6, D5.10.
        """
        return self._hook("approver", hook, prepend=prepend)

    @overload
    def on_result(
        self, hook: Callable[[CallView, Outcome], None], /
    ) -> HookRegistration[[CallView, Outcome], None]: ...
    @overload
    def on_result(self, /) -> Decorator: ...
    def on_result(self, hook: Any = None, /) -> Any:
        """Register ``fn(call, outcome)``, told synchronously right before an outcome is recorded.

        What it raises is logged and changes nothing.
        """
        return self._hook("on_result", hook, prepend=False)

    @overload
    def on_change(self, hook: Callable[[], None], /) -> HookRegistration[[], None]: ...
    @overload
    def on_change(self, /) -> Decorator: ...
    def on_change(self, hook: Any = None, /) -> Any:
        """Register ``fn()``, told after tools or restrictions changed anywhere.

        If it raises, the registration that it was told of is undone, and the error leaves ``register``.
        """
        return self._hook("on_change", hook, prepend=False)

    @property
    def _place(self) -> Scope | None:
        """Where registrations are filed: a scope, or ``None`` for the registry itself."""
        raise NotImplementedError

    def _hook(self, kind: str, hook: Callable[..., Any] | None, *, prepend: bool) -> Any:
        if hook is None:

            def decorate(function: F) -> F:
                self._hook(kind, function, prepend=prepend)
                return function

            return decorate
        function: Any = hook.function if isinstance(hook, HookRegistration) else hook
        if not callable(function):
            msg = f"{kind}() takes a function, got {function!r:.80}"
            raise RegistrationError(msg)
        if is_async_callable(function) != HOOK_KINDS[kind]:
            wanted = "an async function" if HOOK_KINDS[kind] else "a plain synchronous function"
            msg = f"{kind}() takes {wanted}, got {function!r:.80}"
            raise RegistrationError(msg)
        return self.registry.file_hook(self._place, kind, function, prepend=prepend)
