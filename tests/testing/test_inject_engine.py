"""Promise 2, wherever the cancel lands: the engine, its tools and the examples leave nothing over; leaks are named."""

from __future__ import annotations

import contextlib
import inspect
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import trio

from quiesce import EXCLUSIVE, Outcome, Registry, ToolCall, open_runtime, run_calls
from quiesce.cli._input import read_message
from quiesce.policies import Deadline
from quiesce.testing import InjectionError, Probe, cancel_everywhere, fail_everywhere
from quiesce.tools import builtin_tools
from toolbox import add_tools, calls_of, registry_of

EXAMPLES = Path(__file__).parents[2] / "examples"
SOURCE = Path(__file__).parents[2] / "src" / "registry"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are seen on Linux only")

Leak = Callable[[list[Any]], Awaitable[None]]


def same(function: Any) -> Any:
    return function


def hooked(registry: Registry, around: Callable[[Any], Any] = same) -> None:
    """Hooks of all kinds that take their time."""

    async def pre(_call: object, proceed: Callable[[], Awaitable[Any]]) -> Any:
        await trio.sleep(0.1)
        return await proceed()

    async def wrapper(_call: object, proceed: Callable[[], Awaitable[Outcome]]) -> Outcome:
        await trio.sleep(0.1)
        return await proceed()

    async def post(_call: object, _outcome: Outcome, proceed: Callable[[], Awaitable[Any]]) -> Any:
        await trio.sleep(0.1)
        return await proceed()

    registry.pre_execute(around(pre))
    registry.around(around(wrapper))
    registry.post_execute(around(post))


async def slow(_: object) -> str:
    with tempfile.TemporaryFile():
        await trio.sleep(1)
    return "done"


async def broken(_: object) -> str:
    await trio.sleep(2)
    raise ValueError("broken")


def in_a_thread(_: object) -> str:
    return threading.current_thread().name.partition(" ")[0]


@pytest.mark.parametrize("cancellable", [False, True])
def test_a_batch_of_async_tools_with_hooks_leaves_nothing_over(cancellable: bool) -> None:
    """Every checkpoint and event of a batch with a pool, a barrier, a failure and hooks of all kinds."""

    async def scenario() -> None:
        registry = registry_of(slow=slow, broken=broken)
        add_tools(registry, EXCLUSIVE, alone=slow)
        hooked(registry)
        async with open_runtime(registry, max_parallel=2) as runtime:
            await runtime.batch(calls_of("slow", "broken", "slow", "alone", "slow"), cancellable=cancellable).run()

    assert cancel_everywhere(scenario).points > 40


def test_a_batch_of_sync_tools_leaves_no_thread_at_work() -> None:
    """Bodies in worker threads are awaited wherever the cancel lands."""

    async def scenario() -> None:
        registry = registry_of(slow=slow, thread=in_a_thread)
        hooked(registry)
        await run_calls(registry, calls_of("thread", "slow", "thread"))

    assert cancel_everywhere(scenario).points > 20


def test_hooks_and_bodies_that_fail_leave_nothing_over() -> None:
    """Each call of a body and a hook fails once; the engine turns it into data."""

    async def scenario(probe: Probe) -> None:
        registry = registry_of(slow=probe.wrap(slow), thread=probe.wrap(in_a_thread))
        hooked(registry, probe.wrap)
        outcomes = await run_calls(registry, calls_of("slow", "thread"))
        assert len(outcomes) == 2

    assert fail_everywhere(scenario).points == 8


def test_bash_leaves_no_process_over() -> None:
    """A command with a child of its own, cancelled at each moment."""

    async def scenario() -> None:
        with tempfile.TemporaryDirectory() as folder:
            registry = Registry()
            for definition in builtin_tools(Path(folder), grace=0.1):
                registry.register(definition)
            command = "(read x < /dev/null) & wait; echo done"
            await run_calls(registry, [ToolCall("c1", "bash", {"command": command, "description": "Wait"})])

    assert cancel_everywhere(scenario, clock="real").points > 15


def example(
    name: str, workspace: Path | None = None, deadline: float | None = None, leak: Leak | None = None
) -> Callable[[list[Any]], Awaitable[None]]:
    """What ``quiesce run`` does with an example, short of printing; with a leaking call before the others."""
    message = read_message(str(EXAMPLES / name))

    async def scenario(kept: list[Any]) -> None:
        with tempfile.TemporaryDirectory() as fresh:
            registry = Registry()
            for definition in builtin_tools(workspace or Path(fresh), grace=0.1):
                registry.register(definition)
            Deadline(default=deadline, cap=deadline).install(registry)
            calls = list(message.calls)
            if leak is not None:

                async def leaking(_: object) -> None:
                    assert leak is not None
                    await leak(kept)

                add_tools(registry, EXCLUSIVE, leaking=leaking)
                calls = [ToolCall("leak", "leaking"), *calls]
            async with open_runtime(registry) as runtime:
                await runtime.batch(calls).run()

    return scenario


EXAMPLE_ARGUMENTS: list[tuple[str, Path | None, float | None, int]] = [
    ("survey.json", SOURCE, None, 4),
    ("mixed.json", None, None, 2),
    ("hanging_test.json", None, 0.3, 9),
]


@pytest.mark.parametrize(("name", "workspace", "deadline", "stride"), EXAMPLE_ARGUMENTS)
def test_an_example_leaves_nothing_over(name: str, workspace: Path, deadline: float, stride: int) -> None:
    """Real processes, searches and files; not every moment, since these runs take real time."""
    scenario = example(name, workspace, deadline)

    async def whole() -> None:
        await scenario([])

    assert cancel_everywhere(whole, clock="real", cancels="checkpoints", stride=stride).points > 3


# Each leaks when it is cancelled at its checkpoint.


async def leaves_a_system_task(kept: list[Any]) -> None:
    over = trio.Event()

    async def behind() -> None:
        await over.wait()  # leaks

    trio.lowlevel.spawn_system_task(behind)
    await trio.lowlevel.checkpoint()
    over.set()
    await trio.lowlevel.cancel_shielded_checkpoint()


async def leaves_a_process(kept: list[Any]) -> None:
    process = subprocess.Popen(["sleep", "600"])  # leaks  # noqa: S607, ASYNC220
    kept.append(process)
    await trio.lowlevel.checkpoint()
    process.kill()
    process.wait()  # noqa: ASYNC222


async def leaves_a_temporary_file(kept: list[Any]) -> None:
    number, name = tempfile.mkstemp()  # leaks
    os.close(number)
    await trio.lowlevel.checkpoint()
    Path(name).unlink()  # noqa: ASYNC240


async def leaves_a_descriptor(kept: list[Any]) -> None:
    opened = Path("/dev/null").open()  # leaks  # noqa: ASYNC230, SIM115
    kept.append(opened)
    await trio.lowlevel.checkpoint()
    opened.close()


async def leaves_a_lock(kept: list[Any]) -> None:
    lock = trio.Lock()
    kept.append(lock)
    lock.acquire_nowait()  # leaks
    await trio.lowlevel.checkpoint()
    lock.release()


async def leaves_a_thread(kept: list[Any]) -> None:
    over = threading.Event()
    kept.append(over)

    def work() -> None:
        over.wait()  # leaks

    thread = threading.Thread(target=work)
    thread.start()
    await trio.lowlevel.checkpoint()
    over.set()
    thread.join()


LEAKS: list[Leak] = [
    leaves_a_system_task,
    leaves_a_process,
    leaves_a_temporary_file,
    leaves_a_descriptor,
    leaves_a_lock,
    leaves_a_thread,
]


@pytest.fixture
def kept() -> Generator[list[Any]]:
    """What is leaked on purpose: closed after the test."""
    things: list[Any] = []
    yield things
    for thing in things:
        if isinstance(thing, subprocess.Popen):
            thing.kill()
            thing.wait()
        elif isinstance(thing, threading.Event):
            thing.set()
        else:
            with contextlib.suppress(AttributeError):
                thing.close()


@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.__name__)
@pytest.mark.parametrize(("name", "workspace", "deadline"), [found[:3] for found in EXAMPLE_ARGUMENTS])
def test_the_line_of_a_leaking_tool_is_named(
    name: str, workspace: Path, deadline: float, leak: Leak, kept: list[Any]
) -> None:
    """A tool in the example's batch that clears up only if it is not cancelled: all findings name its line."""
    scenario = example(name, workspace, deadline, leak)

    async def whole() -> None:
        await scenario(kept)

    with pytest.raises(InjectionError) as caught:
        cancel_everywhere(whole, clock="real", cancels="checkpoints", stop_early=True)
    lines, first = inspect.getsourcelines(leak)
    number = next(first + index for index, line in enumerate(lines) if "# leaks" in line)
    assert {str(found.line).partition(" in ")[0].rpartition("/")[2] for found in caught.value.findings} == {
        f"{Path(__file__).name}:{number}"
    }
