"""Promise: whatever a piece of code leaves behind is found, with the line that it comes from; and nothing else is."""

from __future__ import annotations

import concurrent.futures
import fcntl
import inspect
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from quiesce.testing import LeftoverError, watch_leftovers

Leak = Callable[[Path], AbstractContextManager[None]]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes and file locks are seen on Linux only")


# Each makes something, in the line that says so, and clears it away when its block ends.


@contextmanager
def a_busy_thread(_folder: Path) -> Generator[None]:
    over, begun = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        over.wait()  # leaks

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    begun.wait()
    yield
    over.set()
    thread.join()


@contextmanager
def a_process(_folder: Path) -> Generator[None]:
    process = subprocess.Popen(["sleep", "600"])  # leaks  # noqa: S607
    yield
    process.kill()
    process.wait()


@contextmanager
def a_zombie(_folder: Path) -> Generator[None]:
    process = subprocess.Popen(["true"])  # leaks  # noqa: S607
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    yield
    process.wait()


@contextmanager
def a_fork(_folder: Path) -> Generator[None]:
    child = os.fork()  # leaks
    if child == 0:
        signal.pause()
        os._exit(0)
    yield
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@contextmanager
def a_spawned_process(_folder: Path) -> Generator[None]:
    child = os.posix_spawn("/bin/sleep", ["sleep", "600"], os.environ)  # leaks
    yield
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


@contextmanager
def an_open_file(folder: Path) -> Generator[None]:
    opened = (folder / "data").open("w")  # leaks
    yield
    opened.close()


@contextmanager
def a_pipe(_folder: Path) -> Generator[None]:
    ends = os.pipe()  # leaks
    yield
    for end in ends:
        os.close(end)


@contextmanager
def a_socket_pair(_folder: Path) -> Generator[None]:
    ends = socket.socketpair()  # leaks
    yield
    for end in ends:
        end.close()


@contextmanager
def a_temporary_file(_folder: Path) -> Generator[None]:
    number, name = tempfile.mkstemp()  # leaks
    os.close(number)
    yield
    Path(name).unlink(missing_ok=True)  # the watch may have removed it


@contextmanager
def a_temporary_folder(_folder: Path) -> Generator[None]:
    name = tempfile.mkdtemp()  # leaks
    yield
    shutil.rmtree(name, ignore_errors=True)  # as above


@contextmanager
def a_file_with_a_temporary_name(folder: Path) -> Generator[None]:
    path = folder / "report.tmp"
    path.write_text("half")  # leaks
    yield
    path.unlink()


@contextmanager
def a_lock_whose_owner_has_ended(_folder: Path) -> Generator[None]:
    lock = trio.Lock()
    over = trio.Lock()

    async def take() -> None:
        async with over:
            await lock.acquire()  # leaks

    trio.run(take)
    yield
    assert lock.locked()


@contextmanager
def a_semaphore(_folder: Path) -> Generator[None]:
    semaphore = trio.Semaphore(2, max_value=2)
    trio.run(semaphore.acquire)  # leaks
    yield
    semaphore.release()


@contextmanager
def a_limiter(_folder: Path) -> Generator[None]:
    limiter = trio.CapacityLimiter(1)

    async def take() -> None:
        limiter.acquire_on_behalf_of_nowait("somebody")  # leaks

    trio.run(take)
    yield
    limiter.release_on_behalf_of("somebody")


@contextmanager
def a_locked_file(folder: Path) -> Generator[None]:
    path = folder / "lock"
    with path.open("w") as opened:  # leaks
        fcntl.flock(opened, fcntl.LOCK_EX)  # leaks
        yield


LEAKS: list[tuple[str, Leak]] = [
    ("thread", a_busy_thread),
    ("process", a_process),
    ("process", a_zombie),
    ("process", a_fork),
    ("process", a_spawned_process),
    ("descriptor", an_open_file),
    ("descriptor", a_pipe),
    ("descriptor", a_socket_pair),
    ("file", a_temporary_file),
    ("file", a_temporary_folder),
    ("file", a_file_with_a_temporary_name),
    ("lock", a_lock_whose_owner_has_ended),
    ("lock", a_semaphore),
    ("lock", a_limiter),
    ("lock", a_locked_file),
]


def leaking_lines(leak: Leak) -> set[str]:
    """Where a leak says that it leaks, without the function."""
    lines, first = inspect.getsourcelines(leak)
    return {f"{Path(__file__).name}:{first + index}" for index, line in enumerate(lines) if "# leaks" in line}


@pytest.mark.parametrize(("kind", "leak"), LEAKS, ids=lambda value: getattr(value, "__name__", value))
def test_what_is_left_over_is_found_with_its_line(kind: str, leak: Leak, tmp_path: Path) -> None:
    """The kind is found, and every finding names the line that made it."""
    with ExitStack() as later, watch_leftovers(grace=0.01) as left:
        later.enter_context(leak(tmp_path))
    assert kind in {found.kind for found in left.found}
    lines = {str(found.line).partition(" in ")[0].rpartition("/")[2] for found in left.found}
    assert lines == leaking_lines(leak)
    with pytest.raises(LeftoverError, match=f"{kind} left over: ") as caught:
        left.check()
    assert caught.value.leftovers == left.found


@pytest.mark.parametrize(("kind", "leak"), LEAKS, ids=lambda value: getattr(value, "__name__", value))
def test_what_is_cleared_away_in_time_is_not_found(kind: str, leak: Leak, tmp_path: Path) -> None:
    """The same things, gone before the block ends."""
    with watch_leftovers() as left, leak(tmp_path):
        pass
    left.check()
    assert left.found == ()


@pytest.mark.parametrize(("kind", "leak"), LEAKS, ids=lambda value: getattr(value, "__name__", value))
def test_what_was_there_before_is_not_found(kind: str, leak: Leak, tmp_path: Path) -> None:
    """Only what the block itself leaves counts."""
    with leak(tmp_path), watch_leftovers() as left:
        pass
    assert left.found == ()


async def test_a_task_that_outlives_the_block_is_found_where_it_stands() -> None:
    """Within a run of trio: its name and line; its children are its own affair, and a task that ended is none."""

    async def child() -> None:
        await trio.sleep_forever()

    async def parent() -> None:
        async with trio.open_nursery() as inner:
            inner.start_soon(child)
            await trio.sleep_forever()  # stands here

    async with trio.open_nursery() as nursery:
        with watch_leftovers() as left:
            nursery.start_soon(parent)
            nursery.start_soon(trio.lowlevel.checkpoint)
            await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    (found,) = left.found
    assert (found.kind, found.what.rpartition(".")[2]) == ("task", "parent")
    lines, first = inspect.getsourcelines(test_a_task_that_outlives_the_block_is_found_where_it_stands)
    stands = next(first + index for index, line in enumerate(lines) if "# stands here" in line)
    assert f"test_leftovers.py:{stands} in " in str(found.line)


def test_temporary_files_of_children_are_found_too() -> None:
    """``TMPDIR`` leads them to the watched folder, which is removed; then both are as they were."""
    before = tempfile.gettempdir(), os.environ.get("TMPDIR")
    with watch_leftovers() as left:
        subprocess.run(["mktemp"], check=True, stdout=subprocess.DEVNULL)  # noqa: S607
    (found,) = left.found
    assert (found.kind, found.line) == ("file", None)
    assert not Path(found.what).exists()
    assert (tempfile.gettempdir(), os.environ.get("TMPDIR")) == before


def test_a_file_that_is_no_temporary_one_may_stay(tmp_path: Path) -> None:
    """What a program writes on purpose is not left over, though it lies in a folder called tmp; nor is a rename."""
    with watch_leftovers() as left:
        (tmp_path / "result.json").write_text("{}")
        (tmp_path / "template").write_text("{}")
        (tmp_path / "part.tmp").write_text("{}")
        (tmp_path / "part.tmp").rename(tmp_path / "whole")
    assert left.found == ()


def test_a_thread_that_is_just_ending_is_waited_for() -> None:
    """The grace is real time, and no longer than needed."""
    begun = threading.Event()

    def work() -> None:
        begun.set()
        sum(range(5_000_000))

    with watch_leftovers(grace=30) as left:
        thread = threading.Thread(target=work)
        thread.start()
        begun.wait()
    thread.join()
    assert left.found == ()


def test_a_failing_block_is_looked_at_too() -> None:
    """Its own error is the one that is raised."""
    ends: list[int] = []
    with pytest.raises(ZeroDivisionError), watch_leftovers() as left:  # noqa: PT012
        ends.extend(os.pipe())
        raise ZeroDivisionError
    assert {found.kind for found in left.found} == {"descriptor"}
    for end in ends:
        os.close(end)


def test_watches_nest() -> None:
    """Each sees what is left in its own block, and puts everything back."""
    functions = os.pipe, os.fork, trio.Lock.acquire_nowait
    with watch_leftovers() as outer:
        with watch_leftovers() as inner:
            ends = os.pipe()
        assert len(inner.found) == 2
        for end in ends:
            os.close(end)
    assert outer.found == ()
    assert (os.pipe, os.fork, trio.Lock.acquire_nowait) == functions


def test_what_was_there_before_is_not_left_over_whatever_becomes_of_it(tmp_path: Path) -> None:
    """An older child that ends, a file that is renamed or locked again, an executor's idle workers, harmless names."""
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    pool = concurrent.futures.ThreadPoolExecutor(2)
    pool.submit(int).result()
    with (tmp_path / "app.log").open("w") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        with watch_leftovers() as found:
            assert child.stdin is not None
            child.stdin.close()
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            (tmp_path / "app.log").rename(tmp_path / "app.log.1")
            fcntl.flock(log, fcntl.LOCK_EX)
            concurrent.futures.wait([pool.submit(int) for _ in range(4)])
            for name in ("page.tmpl", "tmp_util.py", "template.html"):
                (tmp_path / name).write_text("x")
    pool.shutdown()
    child.wait()
    assert found.found == ()
