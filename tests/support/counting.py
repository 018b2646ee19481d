"""Count what a trio run does, and act at the k-th."""

from __future__ import annotations

from collections.abc import Callable

import trio


class AtStep(trio.abc.Instrument):
    """Counts the steps that tasks take between checkpoints, and acts after the k-th.

    Attributes:
        steps: How many were taken while it was installed.
    """

    def __init__(self, k: int | None, act: Callable[[], object]) -> None:
        self.steps = 0
        self._k = k
        self._act = act

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += 1
        if self.steps == self._k:
            self._act()
