"""What is inside groups of exceptions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import trio

__all__ = ["leaves", "only_cancelled", "only_leaf"]


def leaves(error: BaseException) -> Iterator[BaseException]:
    """What is in a group, however nested, in order; of another exception, itself."""
    pending = [error]
    while pending:
        top = pending.pop()
        if isinstance(top, BaseExceptionGroup):
            pending.extend(reversed(cast("BaseExceptionGroup[BaseException]", top).exceptions))
        else:
            yield top


def only_leaf(error: BaseException) -> BaseException:
    """What a group was made of, if that was one exception; else the group."""
    found = list(leaves(error))
    return found[0] if len(found) == 1 else error


def only_cancelled(error: BaseException) -> bool:
    """Whether an exception is ``Cancelled``, or a group of nothing else."""
    return all(isinstance(leaf, trio.Cancelled) for leaf in leaves(error))
