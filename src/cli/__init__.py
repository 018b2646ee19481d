"""The command line: ``quiesce run``, ``quiesce tools``."""

from ._main import main

__all__ = ["main"]
