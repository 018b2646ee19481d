"""Ready-made hooks."""

from ._deadline import Deadline

__all__ = ["Deadline"]
