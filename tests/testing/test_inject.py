"""Promise: every place where a cancel or a failure can land is tried, and what it breaks is named with its line."""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from quiesce.testing import Finding, Injection, InjectionError, Probe, cancel_everywhere, fail_everywhere


@pytest.fixture
def kept() -> Generator[list[Any]]:
    """What a scenario leaks on purpose: closed after the test."""
    things: list[Any] = []
    yield things
    for thing in things:
        match thing:
            case int():
                os.close(thing)
            case subprocess.Popen():
                thing.kill()
                thing.wait()
            case threading.Event():
                thing.set()
            case _:
                getattr(thing, "close", lambda: None)()


def findings_of(inject: Callable[..., object], *args: Any, **options: Any) -> tuple[Finding, ...]:
    """What an injection finds."""
    with pytest.raises(InjectionError) as caught:
        inject(*args, **options)
    return caught.value.findings


def marked(function: Callable[..., object], mark: str = "# leaks") -> str:
    """The line of a function that has a mark, as findings name it, without the folder."""
    lines, first = inspect.getsourcelines(function)
    number = next(first + index for index, line in enumerate(lines) if mark in line)
    return f"{Path(__file__).name}:{number}"


def short(line: str | None) -> str:
    return str(line).partition(" in ")[0].rpartition("/")[2]


async def three_steps() -> None:
    for _ in range(3):
        await trio.lowlevel.checkpoint()


def test_a_scenario_without_faults_is_struck_after_each_step() -> None:
    """One run to warm up, one to count, one for each of three checkpoints; with a stride, fewer."""
    assert cancel_everywhere(three_steps) == Injection(runs=5, points=3)
    assert cancel_everywhere(three_steps, stride=2) == Injection(runs=4, points=2)
    assert cancel_everywhere(three_steps, cancels="events") == Injection(runs=2, points=0)


def test_each_checkpoint_is_struck_once_and_in_order() -> None:
    """The k-th run sees exactly k steps before its cancel."""
    seen: list[int] = []

    async def scenario() -> None:
        done = 0
        try:
            for _ in range(4):
                done += 1
                await trio.lowlevel.checkpoint()
        finally:
            seen.append(done)

    cancel_everywhere(scenario)
    assert seen == [4, 4, 1, 2, 3, 4]


def test_steps_of_child_tasks_count() -> None:
    """A cancel between two steps of a child is one of its own."""

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:  # noqa: ASYNC112
            nursery.start_soon(three_steps)

    # Its own step into the nursery, three of the child and the one that ends it.
    assert cancel_everywhere(scenario, cancels="checkpoints").points == 5


def test_a_descriptor_that_a_cancel_leaves_open_is_named_by_the_line_that_opened_it(kept: list[Any]) -> None:
    """Found at the one checkpoint between opening and closing; the message tells both lines."""

    async def scenario() -> None:
        await trio.lowlevel.checkpoint()
        ends = os.pipe()  # leaks
        kept.extend(ends)
        await trio.lowlevel.checkpoint()  # struck
        for end in ends:
            os.close(end)
        del kept[:]

    found = findings_of(cancel_everywhere, scenario)
    # Twice in the run after the second step, once for each end; later runs find those there already.
    assert {(finding.k, finding.at, short(finding.line), short(finding.struck)) for finding in found} == {
        (2, "checkpoint", marked(scenario), marked(scenario, "# struck"))
    }
    assert all(finding.what.startswith("descriptor left over: ") for finding in found)


def test_a_process_is_named_by_the_line_that_asked_for_it_though_a_thread_started_it(kept: list[Any]) -> None:
    """Trio starts processes in worker threads, whose stacks know nothing of the caller."""

    async def scenario() -> None:
        process = await trio.lowlevel.open_process(["sleep", "600"])  # leaks
        # Out of a run of trio only its parts can be closed.
        kept.extend([getattr(process, "_pidfd", None), getattr(process, "_proc", None)])
        await trio.lowlevel.checkpoint()
        process.kill()
        await process.wait()

    found = findings_of(cancel_everywhere, scenario, clock="real", cancels="checkpoints")
    assert any(finding.what.startswith("process left over") for finding in found)
    assert {short(finding.line) for finding in found} == {marked(scenario)}


def test_a_system_task_that_a_cancel_leaves_running_is_named_where_it_stands() -> None:
    """It lives on behind the scope, until trio ends it with the run."""

    async def behind(over: trio.Event) -> None:
        await over.wait()  # leaks

    async def scenario() -> None:
        over = trio.Event()
        trio.lowlevel.spawn_system_task(behind, over)
        await trio.lowlevel.checkpoint()
        over.set()
        await trio.testing.wait_all_tasks_blocked()

    found = findings_of(cancel_everywhere, scenario)
    assert {short(finding.line) for finding in found if finding.k > 1} == {marked(behind)}
    assert all(finding.what.startswith("task left over: ") for finding in found)


def test_a_thread_that_a_cancel_abandons_is_named_where_it_stands(kept: list[Any]) -> None:
    """``abandon_on_cancel`` walks away from a thread at work."""

    def work(over: threading.Event) -> None:
        over.wait()  # leaks

    async def scenario() -> None:
        over = threading.Event()
        kept.append(over)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: trio.to_thread.run_sync(work, over, abandon_on_cancel=True))
            await trio.testing.wait_all_tasks_blocked()
            over.set()

    found = findings_of(cancel_everywhere, scenario, cancels="checkpoints")
    threads = [finding for finding in found if finding.what.startswith("thread")]
    assert {short(finding.line) for finding in threads} == {marked(work)}


def test_temporary_files_and_locks_are_named_by_the_line_that_made_or_took_them(kept: list[Any]) -> None:
    """A plain call where a ``with`` belongs; the twin with it leaves nothing."""
    lock = trio.Lock()

    async def careless() -> None:
        private = trio.Lock()
        await private.acquire()  # leaks a lock
        path = Path(tempfile.gettempdir()) / "half"
        path.write_text("x")  # leaks a file  # noqa: ASYNC240
        kept.append(private)
        await trio.lowlevel.checkpoint()
        path.unlink()  # noqa: ASYNC240
        private.release()

    async def careful() -> None:
        async with lock:
            with tempfile.NamedTemporaryFile() as file:
                await trio.to_thread.run_sync(file.write, b"x")

    found = findings_of(cancel_everywhere, careless)
    assert {(finding.what.partition(" ")[0], short(finding.line)) for finding in found} == {
        ("lock", marked(careless, "# leaks a lock")),
        ("file", marked(careless, "# leaks a file")),
    }
    assert cancel_everywhere(careful).points > 3


def test_a_lock_that_was_there_before_the_scenario_is_looked_at_too() -> None:
    """One that all runs share."""
    limiter = trio.CapacityLimiter(1_000)

    async def scenario() -> None:
        me = object()
        limiter.acquire_on_behalf_of_nowait(me)  # leaks
        await trio.lowlevel.checkpoint()
        limiter.release_on_behalf_of(me)

    (found,) = findings_of(cancel_everywhere, scenario)
    assert (found.k, short(found.line)) == (1, marked(scenario))


def test_a_cancel_lands_between_two_calls_into_trio_of_one_step() -> None:
    """Only events find what breaks when the cancel comes after a hand-over and before the next checkpoint."""

    async def scenario() -> None:
        ready, other = trio.Event(), trio.Event()
        got: list[str] = []

        async def wait_for(event: trio.Event, name: str) -> None:
            await event.wait()
            got.append(name)

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait_for, ready, "first")
                nursery.start_soon(wait_for, other, "second")
                await trio.testing.wait_all_tasks_blocked()
                ready.set()  # struck
                other.set()
                await trio.lowlevel.checkpoint()
        finally:
            if got == ["first"]:
                raise ValueError("one of two that belong together")

    assert cancel_everywhere(scenario, cancels="checkpoints").points > 3
    (found,) = findings_of(cancel_everywhere, scenario, cancels="events")
    assert (found.at, short(found.struck)) == ("task_scheduled", marked(scenario, "# struck"))
    assert found.what.startswith("raised ")


def test_a_cancel_never_lands_within_trio() -> None:
    """One call that wakes many tasks is one event, and its own loop over them is not disturbed."""

    async def scenario() -> None:
        event = trio.Event()
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(event.wait)
            await trio.testing.wait_all_tasks_blocked()
            event.set()

    # Five starts, one waking by the clock of the scenario's own wait, one set.
    assert cancel_everywhere(scenario, cancels="events").points == 7


def test_a_cancel_lands_between_a_timer_and_the_task_that_it_wakes() -> None:
    """The task has been woken, has not run yet, and is struck then: it gets the value, not the cancel."""
    late: list[bool] = []

    async def scenario() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        late.append(trio.current_effective_deadline() == -math.inf)

    assert cancel_everywhere(scenario, cancels="events").points == 1
    assert late == [False, False, True]


def test_the_probe_marks_calls_as_events() -> None:
    """A cancel right before and right after each call of a wrapped function, async or not."""
    states: list[str] = []

    def cancelled() -> bool:
        return trio.current_effective_deadline() == -math.inf

    async def scenario(probe: Probe) -> None:
        def commit() -> None:
            states.append("cancelled" if cancelled() else "alive")

        async def fetch() -> str:
            return "value"

        probe.wrap(commit)()
        assert await probe.wrap(fetch)() == "value"
        states.append("cancelled" if cancelled() else "alive")
        await trio.lowlevel.checkpoint()

    assert cancel_everywhere(scenario, cancels="events").points == 4
    alive = ["alive", "alive"]
    assert states == [*alive, *alive, "cancelled", "cancelled", *["alive", "cancelled"] * 3]


def test_a_swallowed_cancel_is_found() -> None:
    """It was given to the main task and did not come out; a cancel that came too late to be given is none."""

    async def scenario() -> None:
        with contextlib.suppress(trio.Cancelled):
            await trio.sleep(1)

    (found,) = findings_of(cancel_everywhere, scenario)
    assert found.k == 1
    assert found.what.startswith("swallowed the cancel")


def test_a_scope_of_the_scenarios_own_may_end_a_shielded_clean_up() -> None:
    """Its ``Cancelled`` is not the injected one, so nothing was swallowed."""

    async def scenario() -> None:
        try:
            await trio.sleep(1)
        finally:
            with trio.move_on_after(2, shield=True):
                await trio.sleep_forever()

    assert cancel_everywhere(scenario).points == 4


def test_a_scenario_that_never_settles_is_found() -> None:
    """A shield without a bound: where each task waits is told."""

    async def scenario() -> None:
        try:
            await trio.sleep(1)
        except BaseException:
            with trio.CancelScope(shield=True):
                await trio.Event().wait()  # stuck
            raise

    found = findings_of(cancel_everywhere, scenario)
    assert {finding.at for finding in found} == {"checkpoint", "woken"}
    assert all(finding.what.startswith("never settled: ") for finding in found)
    assert all(marked(scenario, "# stuck") in finding.what for finding in found)


def test_another_error_than_the_cancel_is_found_unless_it_is_allowed() -> None:
    """Also in groups; with the line that raised it."""

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(three_steps)
            try:
                await trio.sleep(1)
            except trio.Cancelled:
                raise KeyError("lost") from None  # raises  # noqa: ASYNC104

    found = findings_of(cancel_everywhere, scenario)
    assert {short(finding.line) for finding in found} == {marked(scenario, "# raises")}
    assert cancel_everywhere(scenario, allowed=(KeyError,)).points > 3


def test_the_check_is_made_after_each_run() -> None:
    """Invariants of the world: half a file is found at the moment that makes it half."""
    written: list[str] = []

    async def scenario() -> None:
        written.clear()
        written.append("head")
        await trio.lowlevel.checkpoint()
        written.append("tail")

    def whole() -> None:
        assert len(written) == 2, "half a file"

    (found,) = findings_of(cancel_everywhere, scenario, check=whole)
    assert (found.k, found.what.partition("\n")[0]) == (1, "check failed: half a file")


def test_a_scenario_that_fails_by_itself_raises_its_own_error() -> None:
    """With a note that nothing was injected."""

    async def scenario() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        cancel_everywhere(scenario)
    assert caught.value.__notes__ == ["quiesce.testing: this is the run in which nothing was injected"]


def test_what_is_left_over_without_an_injection_is_found_first(kept: list[Any]) -> None:
    """As number 0, and no further runs are made."""

    async def scenario() -> None:
        kept.extend(os.pipe())  # leaks
        await trio.lowlevel.checkpoint()

    with pytest.raises(InjectionError, match=r"2 findings in 2 runs|1 finding in 2 runs") as caught:
        cancel_everywhere(scenario)
    assert {(finding.k, finding.at) for finding in caught.value.findings} == {(0, "end")}
    assert {short(finding.line) for finding in caught.value.findings} == {marked(scenario)}


def test_what_only_the_collector_would_close_is_left_over() -> None:
    """Whether it happens to come by in time must not decide; it does not run until the scenario was looked at."""

    class Holder:
        def __init__(self) -> None:
            self.me = self
            self.end = os.open(os.devnull, os.O_RDONLY)  # leaks

        def __del__(self) -> None:
            os.close(self.end)

    async def scenario() -> None:
        Holder()
        assert len([[number] for number in range(100_000)]) == 100_000  # would make the collector run

    (found,) = findings_of(cancel_everywhere, scenario)
    assert found.what.startswith("descriptor left over: ")
    assert short(found.line) == marked(Holder.__init__)


def test_what_only_the_traceback_of_an_error_keeps_is_not_left_over() -> None:
    """The kit keeps the error, so it lets go of what the frames of its traceback hold."""

    async def scenario() -> None:
        private = trio.Lock()
        await private.acquire()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled:
            raise KeyError("lost") from None  # noqa: ASYNC104
        private.release()

    assert cancel_everywhere(scenario, allowed=(KeyError,)).points == 2


def test_what_only_the_first_run_opens_is_a_cache(kept: list[Any]) -> None:
    """Something opened once and kept is not left over by each run."""

    async def scenario() -> None:
        if not kept:
            kept.extend(os.pipe())
        await trio.lowlevel.checkpoint()

    assert cancel_everywhere(scenario).points == 1


def test_the_same_scenario_gives_the_same_findings() -> None:
    """Moments and lines, in the same order."""

    async def scenario() -> None:
        send, receive = trio.open_memory_channel[int](1)

        async def produce() -> None:
            async with send:
                for number in range(3):
                    await trio.sleep(1)
                    await send.send(number)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(produce)
            with receive:
                try:
                    async for _ in receive:
                        await trio.sleep(0.5)
                except trio.Cancelled:
                    raise ValueError("found") from None  # noqa: ASYNC104

    first = findings_of(cancel_everywhere, scenario)
    assert len(first) > 10
    assert findings_of(cancel_everywhere, scenario) == first


def test_the_message_tells_each_finding_once_with_its_moments() -> None:
    """Not three hundred lines for one fault."""

    async def scenario() -> None:
        try:
            await trio.sleep(1)
            for _ in range(99):
                await trio.lowlevel.checkpoint()
        except trio.Cancelled:
            raise ValueError("broken") from None  # noqa: ASYNC104

    with pytest.raises(InjectionError) as caught:
        cancel_everywhere(scenario, cancels="checkpoints")
    assert len(caught.value.findings) == 100
    head, what, line, moments = str(caught.value).splitlines()
    assert head.endswith("scenario: 1 finding in 102 runs")
    assert what == "- raised ValueError: broken"
    assert re.fullmatch(r" +from .*test_inject\.py:\d+ in .*scenario", line)
    assert re.fullmatch(r" +at checkpoint 1-100, first struck at .*test_inject\.py:\d+ in .*scenario", moments)


def test_it_can_stop_at_the_first_finding() -> None:
    """After the run that shows it."""

    async def scenario() -> None:
        try:
            await three_steps()
        except trio.Cancelled:
            raise ValueError("broken") from None  # noqa: ASYNC104

    (found,) = findings_of(cancel_everywhere, scenario, stop_early=True)
    assert found.k == 1


async def test_within_a_run_of_trio_it_is_refused() -> None:
    """It makes runs of its own."""
    with pytest.raises(RuntimeError, match="call this from a plain function"):
        cancel_everywhere(three_steps)


@pytest.mark.parametrize("options", [{"stride": 0}, {"cancels": "some"}, {"clock": "sundial"}, {"max_steps": 0}])
def test_arguments_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    """Before anything is run."""
    with pytest.raises(ValueError, match="must be"):
        cancel_everywhere(three_steps, **options)


async def store_and_send(store: Callable[[str], None], send: Callable[[str], Awaitable[None]]) -> None:
    for word in ("a", "b"):
        store(word)
        await send(word)


def collaborators(probe: Probe) -> tuple[Callable[[str], None], Callable[[str], Awaitable[None]]]:
    async def send(_word: str) -> None:
        await trio.lowlevel.checkpoint()

    def store(_word: str) -> None: ...

    return probe.wrap(store), probe.wrap(send)


def test_each_call_of_a_collaborator_fails_once() -> None:
    """The error comes out alone, in a group or as a cause, or not at all; each is right."""
    failed: list[str] = []

    async def alone(probe: Probe) -> None:
        await store_and_send(*collaborators(probe))

    async def grouped(probe: Probe) -> None:
        async with trio.open_nursery() as nursery:  # noqa: ASYNC112
            nursery.start_soon(store_and_send, *collaborators(probe))

    async def caused(probe: Probe) -> None:
        try:
            await alone(probe)
        except OSError as error:
            raise RuntimeError("wrapped") from error

    async def handled(probe: Probe) -> None:
        try:
            await alone(probe)
        except TimeoutError as error:
            failed.append(str(error))

    for scenario in (alone, grouped, caused):
        assert fail_everywhere(scenario) == Injection(runs=6, points=4)
    assert fail_everywhere(handled, error=lambda: TimeoutError("late")).points == 4
    assert fail_everywhere(handled, error=TimeoutError("early")).points == 4
    assert failed == ["late"] * 4 + ["early"] * 4


def test_another_error_than_the_injected_one_is_found() -> None:
    """An accident while handling it, for instance; not if it is allowed."""

    async def scenario(probe: Probe) -> None:
        store, send = collaborators(probe)
        try:
            store("a")
            await send("a")
        except OSError:
            raise KeyError("accident") from None  # raises

    found = findings_of(fail_everywhere, scenario)
    assert [(finding.k, short(finding.line)) for finding in found] == [
        (k, marked(scenario, "# raises")) for k in (1, 2)
    ]
    assert [finding.at.rpartition(".")[2] for finding in found] == ["store", "send"]
    assert fail_everywhere(scenario, allowed=(KeyError,)).points == 2


def test_what_a_failing_collaborator_leaves_over_is_found(kept: list[Any]) -> None:
    """The same leftovers as after a cancel, also when the call is made in a thread."""

    async def scenario(probe: Probe) -> None:
        ends = os.pipe()  # leaks
        kept.extend(ends)
        await trio.to_thread.run_sync(probe.wrap(len), "word")
        for end in ends:
            os.close(end)
        del kept[:]

    found = findings_of(fail_everywhere, scenario)
    assert {(finding.k, finding.at, short(finding.line)) for finding in found} == {(1, "call of len", marked(scenario))}
