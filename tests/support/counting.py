"""Small aids: count what a trio run does and act at the k-th, and seed trio's task order."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

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


def _private() -> Any:
    """Trio's scheduler module, if it still has the private generator and flag; else ``None``."""
    run = getattr(getattr(trio, "_core", None), "_run", None)
    return run if hasattr(run, "_r") and hasattr(run, "_ALLOW_DETERMINISTIC_SCHEDULING") else None


def seed_schedule(seed: int) -> bool:
    """Make trio pick task orders from ``seed``, with real variety; whether this trio can.

    Outside Hypothesis trio only ever reverses a batch of tasks or not.
    """
    run = _private()
    if run is None:
        return False
    run._r.seed(seed)  # noqa: SLF001 - feature-tested above
    run._ALLOW_DETERMINISTIC_SCHEDULING = True  # noqa: SLF001 - feature-tested above
    return True


@contextmanager
def restored_schedule() -> Generator[None]:
    """Put trio's generator and flag back as they were."""
    run = _private()
    before = None if run is None else (run._r.getstate(), run._ALLOW_DETERMINISTIC_SCHEDULING)  # noqa: SLF001
    try:
        yield
    finally:
        if run is not None and before is not None:
            run._r.setstate(before[0])  # noqa: SLF001
            run._ALLOW_DETERMINISTIC_SCHEDULING = before[1]  # noqa: SLF001
