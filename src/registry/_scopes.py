"""Scopes: whose tools, restrictions and hooks apply to a call."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING

import attrs

from ..errors import RegistrationError
from ._definitions import ToolDefinition
from ._registrar import Registrar
from ._registration import Registration
from ._tables import LiveTable

if TYPE_CHECKING:
    from ._context import Guard
    from ._registry import Registry

__all__ = ["Layer", "Restriction", "Scope"]


@attrs.frozen(eq=False)
class Restriction:
    """One filter over the tools that a scope inherits.

    Attributes:
        allow: The only names it admits, or ``None`` for all.
        deny: Names it does not admit.
    """

    allow: frozenset[str] | None
    deny: frozenset[str]

    def admits(self, name: str) -> bool:
        """Whether a tool of that name passes."""
        return name not in self.deny and (self.allow is None or name in self.allow)


class Layer:
    """What is registered in one scope, or in the registry itself."""

    def __init__(self) -> None:
        self.tools: dict[str, ToolDefinition] = {}
        self.restrictions: LiveTable[Restriction] = LiveTable()
        self.guards: LiveTable[Guard] = LiveTable()


class Scope(Registrar):
    """A place for registrations that concern one agent, on top of what its parents and the registry hold.

    Made by ``Registry.scope``. It is usable at once, with or without ``with``. Disposal undoes everything that was
    registered in it, and leaves its children alone.

    Attributes:
        chain: This scope, its parent, and so on up; the nearest first.

    Source: ``spec/behaviour.md`` C1, C3, C4.
    """

    def __init__(self, registry: Registry, parent: Scope | None, label: str) -> None:
        if parent is not None and parent.registry is not registry:
            msg = f"the parent {parent!r} belongs to another registry; make it with the same registry's scope()"
            raise RegistrationError(msg)
        self.chain: tuple[Scope, ...] = (self, *(parent.chain if parent is not None else ()))
        self.layer = Layer()
        self._registry = registry
        self._label = label
        self._owned: dict[Registration, None] = {}
        self._disposed = False

    def __repr__(self) -> str:
        return f"<Scope {self._label}>"

    @property
    def registry(self) -> Registry:
        """The registry that it belongs to."""
        return self._registry

    @property
    def _place(self) -> Scope | None:
        return self

    @property
    def label(self) -> str:
        """Its name in messages."""
        return self._label

    @property
    def parent(self) -> Scope | None:
        """The scope that it inherits from, or ``None`` if that is the registry itself."""
        return self.chain[1] if len(self.chain) > 1 else None

    def restrict(self, *, allow: Iterable[str] | None = None, deny: Iterable[str] | None = None) -> Registration:
        """Narrow what this scope inherits; its own tools are outside its own filter.

        Several restrictions intersect, and each is lifted on its own.

        Args:
            allow: The only names that stay visible, also among tools registered later.
            deny: Names that become invisible.

        Raises:
            RegistrationError: Neither is given, or a name is not inherited here.

        Source: ``spec/behaviour.md`` C4.3, C4.4.
        """
        return self._registry.restrict_scope(self, allow, deny)

    def own(self, registration: Registration) -> None:
        """Undo ``registration`` when this scope is disposed."""
        if self._disposed:
            registration.unregister()
            msg = f"{self!r} is disposed: nothing can be registered in it any more; make a new scope"
            raise RegistrationError(msg)
        self._owned[registration] = None

    def dispose(self) -> None:
        """Undo everything registered here, the newest first; calling it again does nothing."""
        self._disposed = True
        errors: list[Exception] = []
        while self._owned:
            registration, _ = self._owned.popitem()
            try:
                registration.unregister()
            except Exception as error:  # noqa: BLE001 - an observer's error must not keep the rest registered
                errors.append(error)
        if errors:
            raise errors[0]

    def __enter__(self) -> Scope:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.dispose()
