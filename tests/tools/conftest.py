"""What the tests of the built-in tools share: calling a tool, waiting for a process, and looking for leftovers."""

from __future__ import annotations

import contextlib
import os
import shutil
import sysconfig
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
import trio
import trio.testing

from quiesce.registry import Arguments, ErrorInfo, Failure, JsonValue, Success, TextBlock, ToolDefinition, freeze
from quiesce.tools._process import Command, Completed, run_command

GRACE = 0.1
"""Seconds of grace in these tests: short, since some of the commands use it up."""


@attrs.frozen
class Called:
    """What a call of a tool gave: its value, its text, its metadata, and the card made from them."""

    value: Any
    text: str
    meta: Any
    card: Any


CallTool = Callable[..., Awaitable[Called]]
RunBash = Callable[..., Awaitable[Completed]]
SignalFrom = Callable[[str], Callable[[], Awaitable[str]]]


@pytest.fixture
def call_tool() -> CallTool:
    """Calls a tool as the pipeline does, and checks its arguments and value: ``await run(bash, command="ls")``."""

    async def call(definition: ToolDefinition, **given: JsonValue) -> Called:
        arguments = cast("Arguments", freeze(given))
        assert definition.check_arguments(arguments) == []
        value = freeze(cast("JsonValue", await cast("Awaitable[object]", definition.bind(arguments, None)())))
        assert definition.check_value(value) == []
        text = definition.output.render(arguments, value)
        assert isinstance(text, str)
        project, present = definition.output.presentation_meta, definition.present_result
        meta = None if project is None else freeze(project(arguments, value))
        outcome = Success("c1", definition.name, 0, value, (TextBlock(text),), meta)
        return Called(value, text, meta, None if present is None else present(arguments, outcome))

    return call


@pytest.fixture
def failed() -> Callable[[str], Failure]:
    """Make the failure of a call that has this message."""
    return lambda message: Failure("c1", "t", 0, ErrorInfo(message, "ToolError"), (TextBlock(f"Error: {message}"),))


@pytest.fixture
def run_bash(tmp_path: Path) -> RunBash:
    """Runs a script under ``run_command``; options are the grace, the timeout and the limits."""

    async def run(script: str, *, grace: float = GRACE, **options: Any) -> Completed:
        timeout = options.pop("timeout", float("inf"))
        limits: dict[str, Any] = {"stdout_limit": 64_000, "stderr_limit": 64_000} | options
        command = Command(("bash", "-c", "--", script), str(tmp_path), dict(os.environ), **limits)
        return await run_command(command, grace=grace, timeout=timeout)

    return run


@pytest.fixture
def signal_from(tmp_path: Path) -> Iterator[SignalFrom]:
    """Makes a FIFO of this name in the working folder; awaiting what it returns waits for a line written to it."""
    with contextlib.ExitStack() as opened:

        def make(name: str) -> Callable[[], Awaitable[str]]:
            os.mkfifo(tmp_path / name)
            # Open for writing too: without a reader a process would block, without a writer we would meet the end.
            descriptor = os.open(tmp_path / name, os.O_RDWR | os.O_NONBLOCK)
            opened.callback(os.close, descriptor)

            async def wait() -> str:
                line = b""
                while not line.endswith(b"\n"):
                    await trio.lowlevel.wait_readable(descriptor)
                    line += os.read(descriptor, 1)
                return line.decode()

            return wait

        yield make


@pytest.fixture
def running_clock() -> trio.testing.MockClock:
    """Trio's clock at the pace of real time, which can also jump."""
    return trio.testing.MockClock(rate=1.0)


@pytest.fixture
def ripgrep_path() -> Path:
    """The real ripgrep, which the ``search`` extra installs."""
    found = shutil.which("rg", path=sysconfig.get_path("scripts")) or shutil.which("rg")
    if found is None:
        pytest.skip("ripgrep is not installed")
    return Path(found)


@pytest.fixture(autouse=True)
def nothing_left_behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test leaves a file descriptor open or a process alive that inherited this test's environment."""
    nonce = f"{uuid.uuid4()}"
    monkeypatch.setenv("QUIET_TEST_NONCE", nonce)
    descriptors, processes = _descriptors(), _processes()
    yield
    assert [process for process in _processes() - processes if _has_nonce(process, nonce)] == []
    assert _descriptors() - descriptors == set()


def _descriptors() -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.add((entry.name, str(entry.readlink())))
        except FileNotFoundError:  # the one that lists the folder
            continue
    return found


def _processes() -> set[Path]:
    return {entry for entry in Path("/proc").iterdir() if entry.name.isdecimal()}


def _has_nonce(process: Path, nonce: str) -> bool:
    """Whether a process has ``nonce`` in its environment; a zombie has none any more."""
    try:
        return nonce.encode() in (process / "environ").read_bytes()
    except OSError:  # it has ended meanwhile, or is somebody else's
        return False
