"""Small scenarios with a known number of schedules and bugs of known depth, for the tests of the kit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio
from trio.lowlevel import checkpoint

Scenario = Callable[[], Awaitable[None]]


def recording(tasks: int, checkpoints: int, seen: list[tuple[int, ...]]) -> Scenario:
    """Tasks that each take ``checkpoints + 1`` steps; a run adds the order of all steps to ``seen``."""

    async def scenario() -> None:
        order: list[int] = []

        async def work(number: int) -> None:
            for _ in range(checkpoints):
                order.append(number)
                await checkpoint()
            order.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(tasks):
                nursery.start_soon(work, number)
        seen.append(tuple(order))

    return scenario


def lost_update() -> Scenario:
    """A bug of depth 2: the second adder must run between the read and the write of the first."""

    async def scenario() -> None:
        total = 0

        async def add(before: int) -> None:
            nonlocal total
            for _ in range(before):
                await checkpoint()
            read = total
            await checkpoint()
            total = read + 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(add, 0)
            nursery.start_soon(add, 4)
        assert total == 2

    return scenario


def used_after_close() -> Scenario:
    """A bug of depth 3: open, then a check, then close, then the use."""

    async def scenario() -> None:
        state = "new"

        async def owner() -> None:
            nonlocal state
            for _ in range(3):
                await checkpoint()
            state = "open"
            await checkpoint()
            state = "closed"

        async def user() -> None:
            await checkpoint()
            if state == "open":
                await checkpoint()
                assert state == "open", f"used while {state}"

        async with trio.open_nursery() as nursery:
            nursery.start_soon(owner)
            nursery.start_soon(user)

    return scenario


async def deadlocking() -> None:
    """Each of two tasks waits for the other, whatever the order."""
    first, second = trio.Event(), trio.Event()

    async def wait_then_set(mine: trio.Event, other: trio.Event) -> None:
        await other.wait()
        mine.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_then_set, first, second, name="one")
        nursery.start_soon(wait_then_set, second, first, name="two")
