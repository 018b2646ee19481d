"""The registry: which tools and hooks apply to a call, and what the model sees."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ..errors import RegistrationError
from ._claims import Claims
from ._classify import classify
from ._context import Approver, AroundHook, ChangeObserver, Guard, PostHook, PreHook, ResultObserver
from ._definitions import ToolDefinition
from ._explain import Explanation, explain
from ._json import JsonValue
from ._registrar import Registrar
from ._registration import HookRegistration, Registration
from ._scopes import Layer, Restriction, Scope
from ._tables import HookTable
from ._values import ToolCall

__all__ = ["Registry"]


class Registry(Registrar):
    """Tools, scopes and hooks. What is registered here applies to every call; what is registered in a scope, to its.

    It is live: a change counts from the next call that starts. It belongs to one thread, and knows nothing of trio.
    """

    def __init__(self) -> None:
        self.layer = Layer()
        self.pre_hooks: HookTable[PreHook] = HookTable()
        self.around_hooks: HookTable[AroundHook] = HookTable()
        self.post_hooks: HookTable[PostHook] = HookTable()
        self.approvers: HookTable[Approver] = HookTable()
        self.result_observers: HookTable[ResultObserver] = HookTable()
        self._change_observers: HookTable[ChangeObserver] = HookTable()
        self._tables: Mapping[str, HookTable[Any]] = {
            "pre_execute": self.pre_hooks,
            "around": self.around_hooks,
            "post_execute": self.post_hooks,
            "approver": self.approvers,
            "on_result": self.result_observers,
            "on_change": self._change_observers,
        }
        self._views: dict[Scope | None, Mapping[str, ToolDefinition]] = {}
        self._numbers = itertools.count(1)

    @property
    def registry(self) -> Registry:
        """Itself."""
        return self

    def scope(self, parent: Scope | None = None, *, label: str | None = None) -> Scope:
        """Make a scope, for one agent say; a context manager that disposes it.

        Args:
            parent: The scope that it inherits from; the registry itself if omitted.
            label: Its name in messages; ``scope-<n>`` if omitted.
        """
        return Scope(self, parent, label or f"scope-{next(self._numbers)}")

    def get(self, name: str, scope: Scope | None = None) -> ToolDefinition | None:
        """The tool of that name that ``scope`` sees, or ``None``; a restricted tool is as good as unknown."""
        return self.view(scope).get(name)

    def schemas(self, scope: Scope | None = None) -> list[dict[str, JsonValue]]:
        """What the model is shown: name, description and parameters of each tool that ``scope`` sees, detached.

        The order is that of registration; a tool that shadows another keeps the other's place.
        """
        return [definition.schema() for definition in self.view(scope).values()]

    def execution_mode(self, call: ToolCall) -> Claims:
        """What a call touches as things stand now: ``PARALLEL``, ``EXCLUSIVE`` or other claims."""
        return classify(self.get(call.name, call.agent), call.arguments)

    def explain(self, name: str, scope: Scope | None = None) -> Explanation:
        """Why a scope sees a tool of that name, or does not: who provides, shadows, hides or may deny it."""
        return explain(self, name, scope)

    def restrict(self, *, allow: Iterable[str] | None = None, deny: Iterable[str] | None = None) -> Registration:
        """Refused here: a restriction belongs to a scope.

        Raises:
            RegistrationError: Always.
        """
        msg = (
            "tools.restrict() requires a scoped context (agent.ctx): a restriction on the registry itself would hide "
            f"tools from everyone; call restrict(allow={allow!r}, deny={deny!r}) on a scope from registry.scope()"
        )
        raise RegistrationError(msg)

    def view(self, scope: Scope | None) -> Mapping[str, ToolDefinition]:
        """The tools that ``scope`` sees, by name, in the order shown to the model. Read-only.

        Source: ``spec/behaviour.md`` C4.2.
        """
        found = self._views.get(scope)
        if found is None:
            found = self._views[scope] = MappingProxyType(self._compute_view(scope))
        return found

    def inherited(self, scope: Scope) -> dict[str, ToolDefinition]:
        """The tools of the registry and of the scope's ancestors, the nearer ones shadowing, before any filter."""
        tools = dict(self.layer.tools)
        for ancestor in reversed(scope.chain[1:]):
            tools |= ancestor.layer.tools
        return tools

    def _compute_view(self, scope: Scope | None) -> dict[str, ToolDefinition]:
        if scope is None:
            return dict(self.layer.tools)
        filters = [restriction for link in scope.chain for restriction in link.layer.restrictions]
        admitted = {name: tool for name, tool in self.inherited(scope).items() if all(f.admits(name) for f in filters)}
        return admitted | scope.layer.tools

    def guards_for(self, scope: Scope | None) -> Iterator[Guard]:
        """The guards that a call of ``scope`` meets, in order, iterated live (C5.1, C5.3)."""
        yield from self.layer.guards
        for link in reversed(scope.chain if scope is not None else ()):
            yield from link.layer.guards

    def file_tool(self, scope: Scope | None, definition: ToolDefinition) -> Registration:
        """Register ``definition`` in ``scope``, or for all calls; used by ``register``."""
        tools = self._layer(scope).tools
        name = definition.name
        if name in tools:
            where = (
                "in this scope"
                if scope is not None
                else ("(for a per-agent variant, register through that agent's `agent.ctx` instead)")
            )
            msg = f'tool "{name}" is already registered {where}'
            raise RegistrationError(msg)
        tools[name] = definition

        def remove() -> None:
            if tools.get(name) is definition:
                del tools[name]

        return self._file(scope, remove)

    def restrict_scope(self, scope: Scope, allow: Iterable[str] | None, deny: Iterable[str] | None) -> Registration:
        """Register a restriction in ``scope``; used by ``Scope.restrict``."""
        if allow is None and deny is None:
            msg = "tools.restrict({}) is a no-op: name the tools to allow or to deny"
            raise RegistrationError(msg)
        names = _names("allow", allow), _names("deny", deny)
        known = self.inherited(scope)
        unknown = [name for name in dict.fromkeys((*(names[0] or ()), *(names[1] or ()))) if name not in known]
        if unknown:
            quoted = ", ".join(f'"{name}"' for name in unknown)
            msg = (
                f"tools.restrict() names unknown global tool{'s' if len(unknown) > 1 else ''} {quoted}; "
                f"known global tools: {', '.join(sorted(known)) or '(none)'}"
            )
            raise RegistrationError(msg)
        restriction = Restriction(None if names[0] is None else frozenset(names[0]), frozenset(names[1] or ()))
        return self._file(scope, scope.layer.restrictions.add(restriction))

    def file_hook(
        self, scope: Scope | None, kind: str, hook: Callable[..., Any], *, prepend: bool
    ) -> HookRegistration[..., Any]:
        """Register a hook of ``kind`` in ``scope``, or for all calls; used by the hook methods."""
        if kind == "guard":
            undo = self._layer(scope).guards.add(hook)
        else:
            undo = self._tables[kind].add(hook, scope, prepend=prepend)
        registration = HookRegistration(hook, undo)
        if scope is not None:
            scope.own(registration)
        return registration

    @property
    def _place(self) -> Scope | None:
        return None

    def _layer(self, scope: Scope | None) -> Layer:
        return self.layer if scope is None else scope.layer

    def _file(self, scope: Scope | None, undo: Callable[[], None]) -> Registration:
        """Finish a change of tools: tell the observers now, and again when it is undone (C3.3, C3.5)."""

        def undo_and_notify() -> None:
            undo()
            self._changed()

        registration = Registration(undo_and_notify)
        try:
            self._changed()
        except BaseException:
            registration.unregister()
            raise
        if scope is not None:
            scope.own(registration)
        return registration

    def _changed(self) -> None:
        self._views.clear()
        for observer in self._change_observers.everyone():
            observer()


def _names(which: str, names: Iterable[str] | None) -> tuple[str, ...] | None:
    if isinstance(names, str):
        msg = f"tools.restrict() takes a list of names for {which}, got the single string {names!r}; write [{names!r}]"
        raise RegistrationError(msg)
    return None if names is None else tuple(names)
