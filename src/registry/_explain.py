"""Why a scope sees a tool, or does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from ._registry import Registry
    from ._scopes import Restriction, Scope

__all__ = ["Explanation", "explain"]


@attrs.frozen
class Explanation:
    """What decides whether a scope sees a tool of a name. Labels are those of scopes, or ``registry``.

    Attributes:
        name: The name that was asked about.
        visible: Whether a call of that name reaches a tool.
        provided_by: The label of the place whose tool it is, or would be if it were not hidden; ``None`` if no place
            on the chain registers one.
        shadows: Labels of the places whose tool of the same name is covered by it, the nearest first.
        hidden_by: For each restriction that hides it, ``<label>: <why>``, the nearest first.
        guards: For each guard that may still deny its calls, ``<label>: <name of the guard>``, in the order asked.
    """

    name: str
    visible: bool
    provided_by: str | None
    shadows: tuple[str, ...] = ()
    hidden_by: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.provided_by is None:
            return f'tool "{self.name}" is unknown here: no scope on the chain registers it, nor does the registry'
        parts = [f'tool "{self.name}" is {"visible" if self.visible else "hidden"}: provided by {self.provided_by}']
        parts += [f"shadowing {', '.join(self.shadows)}"] if self.shadows else []
        parts += [f"hidden by {', '.join(self.hidden_by)}"] if self.hidden_by else []
        parts += [f"guarded by {', '.join(self.guards)}"] if self.guards else []
        return "; ".join(parts)


def explain(registry: Registry, name: str, scope: Scope | None) -> Explanation:
    """See ``Registry.explain``."""
    chain = () if scope is None else scope.chain
    places = [(link.label, link.layer) for link in chain] + [("registry", registry.layer)]
    providers = [label for label, layer in places if name in layer.tools]
    own = scope is not None and name in scope.layer.tools
    hidden = () if own or not providers else _hidden_by(name, chain)
    guards = [
        f"{label}: {getattr(guard, '__qualname__', repr(guard))}"
        for label, layer in reversed(places)
        for guard in layer.guards
    ]
    return Explanation(
        name=name,
        visible=registry.get(name, scope) is not None,
        provided_by=providers[0] if providers else None,
        shadows=tuple(providers[1:]),
        hidden_by=hidden,
        guards=tuple(guards) if providers else (),
    )


def _hidden_by(name: str, chain: tuple[Scope, ...]) -> tuple[str, ...]:
    return tuple(
        f"{link.label}: {_why(name, restriction)}"
        for link in chain
        for restriction in link.layer.restrictions
        if not restriction.admits(name)
    )


def _why(name: str, restriction: Restriction) -> str:
    if name in restriction.deny:
        return f"restrict(deny) names {name}"
    return f"restrict(allow) admits only {', '.join(sorted(restriction.allow or ())) or 'nothing'}"
