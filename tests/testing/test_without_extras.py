"""The kit without its extras, and under a trio that has changed: it imports, and says what is missing."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import pytest

import scenarios
from quiesce.testing import ScheduleControlError, explore, find_failure


def _python(code: str, *without: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter in which some packages cannot be imported."""
    blocked = "import sys\n" + "".join(f"sys.modules[{name!r}] = None\n" for name in without)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", blocked + code], capture_output=True, text=True, check=False
    )


def test_the_kit_works_without_hypothesis_and_pytest() -> None:
    """Exploring, replaying, injecting, checking traces and the fakes need no extra."""
    code = """
import quiesce.testing as kit
from trio.lowlevel import checkpoint
async def scenario():
    await checkpoint()
print(kit.explore(scenario, runs=3).runs)
for name in kit.__all__:
    assert getattr(kit, name)
"""
    done = _python(code, "hypothesis", "hypothesis_jsonschema", "pytest", "_pytest", "pytest_trio")
    assert (done.stdout, done.stderr) == ("3\n", "")


@pytest.mark.parametrize(
    ("code", "package"),
    [
        ("from quiesce.testing import schedules; schedules()", "hypothesis"),
        ("import quiesce.testing.stateful", "hypothesis"),
        ("import quiesce.testing.plugin", "pytest"),
    ],
)
def test_what_needs_an_extra_says_which(code: str, package: str) -> None:
    """The error names the package and the command that installs it."""
    done = _python(code, "hypothesis", "pytest")
    assert "MissingExtraError: " in done.stderr
    assert f"needs {package}: pip install 'quiesce[testing]'" in done.stderr


@pytest.fixture
def fresh_trial() -> Generator[None]:
    """Forget that this trio was found to obey, before and after."""
    from quiesce.testing import _control  # noqa: PLC0415 - its cache is what is reset

    _control.forget_trial()
    yield
    _control.forget_trial()


@pytest.mark.usefixtures("fresh_trial")
@pytest.mark.parametrize("name", ["_r", "_ALLOW_DETERMINISTIC_SCHEDULING"])
def test_a_trio_without_its_private_names_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Exploring with such a trio says what is missing, and which versions have it."""
    monkeypatch.delattr(f"trio._core._run.{name}")
    with pytest.raises(ScheduleControlError, match=rf"has no trio\._core\._run\.{name}.*made for trio 0\.31"):
        explore(scenarios.deadlocking)


@pytest.mark.usefixtures("fresh_trial")
def test_a_trio_that_no_longer_obeys_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names may be there and mean nothing: three tasks are run in an order of our own before any exploring."""
    from quiesce.testing import _control  # noqa: PLC0415 - what is broken

    def idle(self: object, tasks: Any) -> None: ...

    monkeypatch.setattr(_control.Order, "shuffle", idle)
    with pytest.raises(ScheduleControlError, match="did not run tasks in the order given"):
        explore(scenarios.deadlocking)


def test_trio_is_left_as_it_was() -> None:
    """After an exploration trio's generator and flag are its own again, also after a failing one."""
    scheduler: Any = importlib.import_module("trio._core._run")
    before = (scheduler._r, scheduler._ALLOW_DETERMINISTIC_SCHEDULING)  # noqa: SLF001
    find_failure(scenarios.deadlocking, runs=1)
    assert (scheduler._r, scheduler._ALLOW_DETERMINISTIC_SCHEDULING) == before  # noqa: SLF001
