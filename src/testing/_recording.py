"""What is noted of everything scripted: who did what, when, and how it ended."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import attrs
import trio

from ..registry import JsonValue
from ._groups import only_cancelled

__all__ = ["Ending", "Invocation", "Recorder"]

Ending: TypeAlias = Literal["running", "returned", "raised", "cancelled"]


@attrs.frozen
class Invocation:
    """One invocation of something scripted.

    Attributes:
        name: Of the tool, or the tool whose call a hook saw.
        call_id: The provider's label of the call.
        arguments: The frozen arguments.
        began: Seconds on trio's clock.
        ended: Seconds on trio's clock, or ``None`` while it runs.
        how: ``running``, ``returned``, ``raised`` or ``cancelled``. What returns in spite of a cancel has returned.
        result: What it returned or raised, or ``None``.
        begin_rank: Its begin's place in the order of all begins and ends; tells apart what happens at one time.
        end_rank: Its end's place in that order, or ``None``.
    """

    name: str
    call_id: str
    arguments: JsonValue
    began: float
    ended: float | None = None
    how: Ending = "running"
    result: object = None
    begin_rank: int = attrs.field(default=0, eq=False, repr=False)
    end_rank: int | None = attrs.field(default=None, eq=False, repr=False)


_ranks = itertools.count()


class Recorder:
    """Notes invocations in the order in which they begin."""

    def __init__(self) -> None:
        self._noted: list[Invocation] = []

    @property
    def invocations(self) -> tuple[Invocation, ...]:
        """All so far, in the order in which they began."""
        return tuple(self._noted)

    async def note(
        self, name: str, call_id: str, arguments: JsonValue, play: Callable[[int], Awaitable[object]]
    ) -> object:
        """Note what ``play`` does; it is given how many there were before it.

        Returns:
            What it returns.

        Raises:
            BaseException: What it raises.
        """
        number = len(self._noted)
        self._noted.append(Invocation(name, call_id, arguments, trio.current_time(), begin_rank=next(_ranks)))
        try:
            result = await play(number)
        except BaseException as error:
            cancelled = only_cancelled(error)
            # Not the Cancelled itself: it is trio's, and its traceback holds the task.
            self._end(number, "cancelled" if cancelled else "raised", None if cancelled else error)
            raise
        self._end(number, "returned", result)
        return result

    def _end(self, number: int, how: Ending, result: object) -> None:
        noted = self._noted[number]
        self._noted[number] = attrs.evolve(
            noted, ended=trio.current_time(), how=how, result=result, end_rank=next(_ranks)
        )
