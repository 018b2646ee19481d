"""Handles that undo a registration."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar

__all__ = ["HookRegistration", "Registration"]

P = ParamSpec("P")
R = TypeVar("R")


class Registration:
    """A registration that can be undone: by ``unregister()``, as a context manager, or with its scope."""

    def __init__(self, undo: Callable[[], None]) -> None:
        self._undo: Callable[[], None] | None = undo

    @property
    def active(self) -> bool:
        """Whether it is still in force."""
        return self._undo is not None

    def unregister(self) -> None:
        """Undo the registration; calling it again does nothing."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.unregister()


class HookRegistration(Registration, Generic[P, R]):
    """The registration of a hook. Calling it calls the hook, so a bare decorator leaves a usable function.

    Attributes:
        function: The hook as it was given.
    """

    def __init__(self, function: Callable[P, R], undo: Callable[[], None]) -> None:
        super().__init__(undo)
        self.function = function
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __enter__(self) -> HookRegistration[P, R]:
        return self
