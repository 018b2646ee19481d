"""Contents are published in one step: all of it or nothing, and nothing else is left."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from quiesce.errors import ToolError
from quiesce.tools._atomic import ANYTHING, NOTHING, Expected, publish, turn_on
from quiesce.tools._files import Version, read_contents
from quiesce.tools._text_edit import change_text
from quiesce.tools._write import _write as write_file  # pyright: ignore[reportPrivateUsage]


class Stop(Exception):  # noqa: N818 - stands for a cancel
    """Raised by a checkpoint."""


def no_checkpoint() -> None:
    """Nobody cancels."""


def stop_at(count: int) -> Callable[[], None]:
    """A checkpoint that raises when it is called the ``count``-th time, from 1."""
    left = count

    def checkpoint() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Stop

    return checkpoint


def edit_a(path: Path, checkpoint: Callable[[], None]) -> None:
    """An edit of a file."""
    change_text(path, lambda text: text + "new", checkpoint)


def write_a(path: Path, checkpoint: Callable[[], None]) -> None:
    """A write of a file, longer than what is written at once."""
    write_file(path, b"x" * 3_000_000, checkpoint)


@pytest.mark.parametrize("change", [edit_a, write_a])
def test_a_stop_at_any_checkpoint_changes_nothing(tmp_path: Path, change: Callable[..., None]) -> None:
    """Wherever it is cut short, the file is the old one and no other is left; uncut, it is the new one."""
    path = tmp_path / "a"
    count = 0
    for count in range(1, 100):
        path.write_bytes(b"old")
        version = Version.of(path.stat())
        try:
            change(path, stop_at(count))
        except Stop:
            assert Version.of(path.stat()) == version
            assert list(tmp_path.iterdir()) == [path]
        else:
            break
    assert count > 3
    assert path.read_bytes() != b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_nobody_looks_for_a_cancel_after_the_file_changed(tmp_path: Path) -> None:
    """The last look is before: a call that raised for a cancel has changed nothing."""
    path = tmp_path / "a"
    path.write_text("old")

    def checkpoint() -> None:
        assert path.read_text() == "old"

    edit_a(path, checkpoint)
    assert path.read_text() == "oldnew"


SYSTEM_CALLS = ["open", "write", "fsync", "fchmod", "close", "stat", "replace"]


@pytest.mark.parametrize("name", SYSTEM_CALLS)
def test_a_failure_of_the_system_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Whichever call fails, and whenever: the old contents stay, the temporary file goes, nothing else is raised."""
    path = tmp_path / "a"
    path.write_text("old")
    real = getattr(os, name)
    failures = 0
    for count in range(1, 20):
        left = count

        def failing(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                if name == "close":  # it does close
                    real(*args, **kwargs)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(os, name, failing)
            try:
                edit_a(path, no_checkpoint)
            except ToolError as error:
                outcome: str | None = error.code
            else:
                outcome = None
        assert list(tmp_path.iterdir()) == [path]
        if left > 0:
            break
        failures += 1
        assert (outcome, path.read_text()) == ("FS_IO_ERROR", "old")
    assert failures
    assert path.read_text() == "oldnew"


def test_a_temporary_file_that_cannot_be_removed_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first error is the one that is reported, and published is published."""

    def refusing(path: Path) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(os, "unlink", refusing)
    publish(tmp_path / "a", b"x", ANYTHING, no_checkpoint)
    with pytest.raises(Stop):
        publish(tmp_path / "a", b"y", ANYTHING, stop_at(1))
    assert (tmp_path / "a").read_text() == "x"


def test_the_contents_are_on_the_disk_before_the_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forced out, whole, then renamed; the temporary file is beside the target, and private until then."""
    seen: list[tuple[str, bytes, int]] = []
    fsync, replace = os.fsync, os.replace

    def look(what: str) -> None:
        (temporary,) = set(tmp_path.iterdir()) - {tmp_path / "a"}
        seen.append((what, temporary.read_bytes(), temporary.stat().st_mode & 0o777))

    def fsyncing(descriptor: int) -> None:
        fsync(descriptor)
        look("fsync")

    def replacing(old: Path, new: Path) -> None:
        look("replace")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", fsyncing)
    monkeypatch.setattr(os, "replace", replacing)
    publish(tmp_path / "a", b"new", ANYTHING, no_checkpoint)
    assert seen == [("fsync", b"new", 0o600), ("replace", b"new", 0o600)]


@pytest.mark.parametrize("how", ["written", "replaced", "removed", "touched"])
def test_a_file_that_changed_is_not_replaced(tmp_path: Path, how: str) -> None:
    """What somebody else did since it was read is kept, and the code says why."""
    path = tmp_path / "a"
    path.write_text("old")

    def meddle() -> None:
        if how == "written":
            path.write_text("theirs")
        elif how == "replaced":
            (tmp_path / "b").write_text("old")
            (tmp_path / "b").replace(path)
        elif how == "removed":
            path.unlink()
        else:
            os.utime(path, ns=(1, 1))

    def change(text: str) -> str:
        meddle()
        return text + "new"

    with pytest.raises(ToolError, match="read it again, then retry") as caught:
        change_text(path, change, no_checkpoint)
    assert caught.value.code == "FS_STALE_VERSION"
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} in ({}, {"a": "old"}, {"a": "theirs"})


def test_a_file_that_changes_while_it_is_published_is_not_replaced(tmp_path: Path) -> None:
    """The version is looked at again right before the rename."""
    path = tmp_path / "a"
    path.write_text("old")
    version = Version.of(path.stat())

    def meddle() -> None:
        path.write_text("theirs")

    with pytest.raises(ToolError) as caught:
        publish(path, b"new", version, meddle)
    assert (caught.value.code, path.read_text()) == ("FS_STALE_VERSION", "theirs")
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_changes_while_it_is_read_is_not_edited(tmp_path: Path) -> None:
    """Half of the old and half of the new is nobody's text."""
    path = tmp_path / "a"
    path.write_bytes(b"x" * 1_000_000)
    with pytest.raises(ToolError) as caught:
        read_contents(path, lambda: os.utime(path, ns=(1, 1)))
    assert caught.value.code == "FS_STALE_VERSION"


@pytest.mark.parametrize("links", [True, False])
def test_what_must_be_new_takes_nobodys_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    """Also if it appears at the last moment, and on file systems without hard links."""
    path = tmp_path / "a"

    def refusing(old: Path, new: Path, **options: Any) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    if not links:
        monkeypatch.setattr(os, "link", refusing)
    publish(path, b"mine", NOTHING, no_checkpoint)
    assert path.read_bytes() == b"mine"
    with pytest.raises(ToolError) as caught:
        publish(path, b"theirs", NOTHING, no_checkpoint)
    assert caught.value.code == "FS_STALE_VERSION"
    path.unlink()
    calls = 0

    def appear() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            path.write_bytes(b"theirs")

    with pytest.raises(ToolError) as caught:
        publish(path, b"mine", NOTHING, appear)
    assert (caught.value.code, path.read_bytes()) == ("FS_STALE_VERSION", b"theirs")
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_that_fails_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name was taken in the last instant, or the disk failed."""
    for error in (FileExistsError(), OSError(errno.EIO, "no")):

        def failing(old: Path, new: Path, *, why: OSError = error, **options: Any) -> None:
            raise why

        monkeypatch.setattr(os, "link", failing)
        with pytest.raises((ToolError, OSError)):
            publish(tmp_path / "a", b"x", NOTHING, no_checkpoint)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("expected", [ANYTHING, NOTHING])
def test_a_name_that_clashes_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: Expected) -> None:
    """The temporary file is created exclusively: a file of that name would be left alone."""

    def same(size: int) -> str:
        return "0" * 2 * size

    monkeypatch.setattr("secrets.token_hex", same)
    theirs = tmp_path / f".quiesce-{'0' * 32}.tmp"
    theirs.write_text("theirs")
    with pytest.raises(FileExistsError):
        publish(tmp_path / "a", b"x", expected, no_checkpoint)
    assert theirs.read_text() == "theirs"


async def test_changes_of_one_file_take_turns_in_the_whole_process(tmp_path: Path) -> None:
    """Without claims, from any thread: no edit is lost, and one that waits can be cancelled."""
    path = tmp_path / "a"
    path.write_text("")
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(trio.to_thread.run_sync, edit_a, path, no_checkpoint)
    assert path.read_text() == "new" * 20
    with turn_on(path, no_checkpoint):
        waiting = threading.Event()

        def checkpoint() -> None:
            waiting.set()
            trio.from_thread.check_cancelled()

        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, edit_a, path, checkpoint)
                await trio.to_thread.run_sync(waiting.wait)
                scope.cancel()
    assert scope.cancelled_caught
    assert path.read_text() == "new" * 20


def in_a_child(script: str) -> str:
    """Run a script in a process of its own, which may give up rights; gives what it prints."""
    prelude = """
        import contextlib, os, resource, shutil, sys, tempfile
        from pathlib import Path
        import trio
        from quiesce import Registry, ToolCall, run_calls
        from quiesce.tools import builtin_tools

        folder = Path(tempfile.mkdtemp())
        registry = Registry()
        for tool in builtin_tools(folder):
            registry.register(tool)

        def call(name, **arguments):
            [outcome] = trio.run(run_calls, registry, [ToolCall("c", name, arguments)])
            return outcome.code or "done"

        try:
    """
    body = textwrap.indent(textwrap.dedent(script), "    ")
    whole = textwrap.dedent(prelude) + body + "\nfinally:\n    os.path.exists(folder) and shutil.rmtree(folder)\n"
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_full_disk_leaves_the_old_file() -> None:
    """A file that may not grow any further, as on a full disk: the old one stays, the new one goes."""
    printed = in_a_child("""
        (folder / "a").write_text("old")
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        print(call("write", file_path="a", content="x" * 6000))
        print(call("write", file_path="b", content="x" * 6000))
        print(call("edit", file_path="a", old_string="old", new_string="x" * 6000))
        print(call("str_replace_editor", command="create", path=str(folder / "c"), file_text="x" * 6000))
        print(call("edit", file_path="a", old_string="old", new_string="new"))
        print({path.name: path.read_text() for path in folder.iterdir()})
    """)
    assert printed.split("\n") == [*["FS_IO_ERROR"] * 4, "done", "{'a': 'new'}", ""]


def test_what_may_not_be_written_is_not_written() -> None:
    """A read-only file, an unreadable one, a read-only folder; and what belongs to somebody else is taken over."""
    printed = in_a_child("""
        for name, mode in (("read-only", 0o444), ("write-only", 0o200), ("none", 0), ("theirs", 0o6777)):
            (folder / name).write_text("old")
            (folder / name).chmod(mode)
        (folder / "closed").mkdir()
        (folder / "closed" / "a").write_text("old")
        if os.geteuid() == 0:
            for path in (folder, folder / "closed", folder / "closed" / "a", *folder.iterdir()):
                if path.name != "theirs":
                    os.chown(path, 65534, 65534)
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        (folder / "closed").chmod(0o555)
        for name in ("read-only", "none", "closed/a", "closed/new", "write-only", "theirs"):
            print(name, call("write", file_path=name, content="new"))
        (folder / "none").chmod(0)
        print(call("edit", file_path="none", old_string="old", new_string="new"))
        print(oct((folder / "theirs").stat().st_mode & 0o7777) if (folder / "theirs").stat().st_uid else "root")
        print(sorted(str(path.relative_to(folder)) for path in folder.rglob("*")))
        print((folder / "read-only").read_text(), (folder / "closed/a").read_text())
        (folder / "closed").chmod(0o755)
    """)
    denied = "FS_PERMISSION_DENIED"
    assert printed.splitlines()[:7] == [
        f"read-only {denied}",
        f"none {denied}",
        f"closed/a {denied}",
        f"closed/new {denied}",
        "write-only done",
        "theirs done",
        denied,
    ]
    if os.geteuid() == 0:
        assert printed.splitlines()[7] == "0o777"
    assert printed.splitlines()[8:] == [
        "['closed', 'closed/a', 'none', 'read-only', 'theirs', 'write-only']",
        "old old",
    ]


def test_a_file_that_may_not_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated, since root may write anything; a process without rights is tried above."""
    (tmp_path / "a").write_text("old")

    def refusing(path: Path, mode: int, **options: bool) -> bool:
        return False

    monkeypatch.setattr(os, "access", refusing)
    with pytest.raises(ToolError) as caught:
        edit_a(tmp_path / "a", no_checkpoint)
    assert (caught.value.code, (tmp_path / "a").read_text()) == ("FS_PERMISSION_DENIED", "old")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of somebody else's")
def test_a_file_that_cannot_be_given_away_lends_nobodys_rights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to who wrote it then; the bits that would run it with its owner's rights are dropped."""
    path = tmp_path / "a"
    path.write_text("old")
    os.chown(path, 1234, 1234)
    path.chmod(0o6775)

    def refusing(descriptor: int, user: int, group: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refusing)
    edit_a(path, no_checkpoint)
    assert (path.read_text(), path.stat().st_mode & 0o7777, path.stat().st_uid) == ("oldnew", 0o775, os.geteuid())
