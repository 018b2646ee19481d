"""Files that are no sound journal are refused with a clear error and left as they are; readers are always welcome."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import attrs
import pytest
import trio

from quiesce.errors import JournalFileError, JournalLockedError, JournalWriteError
from quiesce.journal import (
    BatchStart,
    CallRequest,
    Event,
    SqliteJournal,
    _sqlite_file,
    _sqlite_writer,
    batches,
    open_sqlite_journal,
    read_events,
    repair,
    replay,
)
from quiesce.journal._sqlite_file import APPLICATION_ID

EVENTS: list[Event] = [
    BatchStart(f"b{n}", 1.0, 2.0, "settled", 3, (CallRequest(0, "c", "t", {"text": "x" * 3000}),)) for n in range(40)
]


def write(path: Path, *more: Event) -> None:
    async def main() -> None:
        async with open_sqlite_journal(path) as journal:
            for event in (*EVENTS, *more):
                journal.append(event)

    trio.run(main)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A sound journal of some pages that nobody has open."""
    path = tmp_path / "journal.db"
    write(path)
    return path


def open_briefly(path: Path) -> None:
    async def main() -> None:
        async with open_sqlite_journal(path):
            pass

    trio.run(main)


def files_in(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()}


def assert_refused(path: Path, message: str) -> None:
    """Whatever is asked of the file, it is refused, and nothing in its folder is written, removed or added."""
    before = files_in(path.parent)
    for ask in (open_briefly, read_events, batches, replay, repair):
        with pytest.raises(JournalFileError, match=message) as caught:
            ask(path)
        assert caught.value.path == os.path.realpath(path)
        assert caught.value.remedy
        after = files_in(path.parent)
        after.pop(f"{path.name}-lock", None)
        before.pop(f"{path.name}-lock", None)
        assert after == before


def database(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("application_id", [0, 252006674])
def test_another_programs_database_is_left_as_it_is(tmp_path: Path, mode: str, application_id: int) -> None:
    """No byte of it changes, and nothing is put beside it."""
    path = tmp_path / "other.db"
    database(
        path,
        f"PRAGMA application_id = {application_id}; PRAGMA journal_mode = {mode}; CREATE TABLE events (seq);",
    )
    assert_refused(path, f"is not a journal of quiesce: its application_id is {application_id}")
    assert sorted(files_in(tmp_path)) == ["other.db"]


@pytest.mark.parametrize("content", [b"a text file\n", b"x", b"\x00" * 5000, b"SQLite format 3\x00", b"{}\n" * 4000])
def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    """Neither is it taken for an empty one."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    assert_refused(path, "is not a journal of quiesce")
    assert sorted(files_in(tmp_path)) == ["notes.txt"]


def test_an_empty_file_is_not_taken_for_a_new_journal(tmp_path: Path) -> None:
    """It may be one that lost all it held."""
    path = tmp_path / "journal.db"
    path.touch()
    assert_refused(path, "is an empty file; remove it")


def test_a_folder_is_no_journal(tmp_path: Path) -> None:
    """The error says so."""
    (tmp_path / "journal.db").mkdir()
    assert_refused(tmp_path / "journal.db", "is not a file")


@pytest.mark.parametrize("version", [0, 2, 1_000_000])
def test_another_version_of_the_format_is_left_as_it_is(path: Path, version: int) -> None:
    """One that is newer is left to who knows it, and the error says to update."""
    database(path, f"PRAGMA user_version = {version}")
    assert_refused(path, f"has format version {version}; this quiesce knows version 1")
    with pytest.raises(JournalFileError) as caught:
        read_events(path)
    assert ("update quiesce" in str(caught.value)) == (version > 1)


def test_a_missing_file_is_made_by_a_writer_only(tmp_path: Path) -> None:
    """Reading and repairing say that there is none, and make none."""
    path = tmp_path / "journal.db"
    for ask in (read_events, batches, replay, repair):
        with pytest.raises(JournalFileError, match="does not exist"):
            ask(path)
    assert files_in(tmp_path) == {}
    with pytest.raises(JournalFileError, match=r"cannot be opened.*see that its folder exists"):
        open_briefly(tmp_path / "nowhere" / "journal.db")


def test_what_the_system_refuses_is_told_like_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the file system is a ``JournalFileError``, too, and nothing is left half made."""

    def refuse(*args: object, **options: object) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(JournalFileError, match=r"cannot be opened: no; see that"):
        open_briefly(tmp_path / "journal.db")
    monkeypatch.setattr(Path, "stat", refuse)
    monkeypatch.setattr(Path, "is_file", bool)
    for ask in (read_events, repair):
        with pytest.raises(JournalFileError, match="cannot be opened: no"):
            ask(tmp_path / "journal.db")


async def test_a_flush_into_a_locked_file_fails_and_is_made_up_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program that writes into the journal holds it up; nothing is lost."""
    monkeypatch.setattr(_sqlite_writer, "_BUSY_SECONDS", 0)
    async with open_sqlite_journal(path) as journal:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            journal.append(EVENTS[0])
            with pytest.raises(JournalWriteError, match=r"is locked by another program; .* the next flush writes it"):
                await journal.flush()
        await journal.flush()
        assert read_events(path) == [*EVENTS, EVENTS[0]]


async def test_rows_of_another_program_are_never_mixed_with_ours(path: Path) -> None:
    """A program that knows no lock and writes at our place makes the write fail as a whole, to be made up for."""
    async with open_sqlite_journal(path) as journal:
        journal.append(EVENTS[0])
        journal.append(EVENTS[1])
        database(path, "INSERT INTO events SELECT 41, batch, type, event FROM events WHERE seq = 0")
        with pytest.raises(JournalWriteError, match="UNIQUE"):
            await journal.flush()
        database(path, "DELETE FROM events WHERE seq = 41")
        assert read_events(path) == EVENTS
        await journal.flush()
        assert read_events(path) == [*EVENTS, EVENTS[0], EVENTS[1]]


def test_a_file_system_without_links_is_good_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the new file is moved to its place; and one that came there meanwhile is never replaced."""

    def refuse(path: Path, target: Path) -> None:
        raise OSError("no links here")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "hardlink_to", refuse)
        open_briefly(tmp_path / "journal.db")
    assert read_events(tmp_path / "journal.db") == []

    def find_another(path: Path, target: Path) -> None:
        path.write_text("somebody's")
        raise FileExistsError

    monkeypatch.setattr(Path, "hardlink_to", find_another)
    with pytest.raises(JournalFileError, match="nor any SQLite file"):
        open_briefly(tmp_path / "other.db")
    assert (tmp_path / "other.db").read_text() == "somebody's"


def test_a_log_without_its_file_is_not_written_over(path: Path) -> None:
    """A new journal beside a stray write-ahead log would swallow what is in it."""
    log = path.with_name("journal.db-wal")
    path.rename(log)
    with pytest.raises(JournalFileError, match=r"its write-ahead log 'journal\.db-wal' does"):
        open_briefly(path)
    assert not path.exists()
    assert log.stat().st_size > 0


def test_a_truncated_file_is_refused_at_every_length(path: Path) -> None:
    """Cut anywhere, by a byte or by pages, it is never read as a shorter journal, and never written to."""
    whole = path.read_bytes()
    lengths = {*range(1, 120, 7), 511, 512, 513, *range(4096, len(whole), 4096), *range(1000, len(whole), 9973)}
    lengths |= {len(whole) - 1, len(whole) - 4095, len(whole) - 100}
    folder = path.parent / "cut"
    folder.mkdir()
    cut = folder / "journal.db"
    for length in sorted(lengths):
        cut.write_bytes(whole[:length])
        for ask in (read_events, open_briefly, repair):
            with pytest.raises(JournalFileError):
                ask(cut)
            assert cut.read_bytes() == whole[:length]
        assert set(files_in(folder)) <= {"journal.db", "journal.db-lock"}
    cut.write_bytes(whole)
    assert read_events(cut) == EVENTS


def test_a_page_of_rubbish_is_found_when_it_is_opened(path: Path) -> None:
    """Whichever page was overwritten: a writer looks at all of them before it writes."""
    whole = path.read_bytes()
    for page in range(1, len(whole) // 4096):
        torn = whole[: page * 4096] + b"\xa5" * 4096 + whole[(page + 1) * 4096 :]
        path.write_bytes(torn)
        with pytest.raises(JournalFileError, match="is damaged"):
            open_briefly(path)
        assert path.read_bytes() == torn


def test_events_that_are_missing_or_unreadable_are_found(path: Path) -> None:
    """Someone's hand in the table is damage, not a shorter history."""
    whole = path.read_bytes()
    database(path, "DELETE FROM events WHERE seq = 3")
    for ask in (read_events, open_briefly):
        with pytest.raises(JournalFileError, match="is damaged: it holds 39 events, numbered up to 39"):
            ask(path)
    path.write_bytes(whole)
    database(path, "UPDATE events SET event = '{' WHERE seq = 3")
    with pytest.raises(JournalFileError, match="is damaged: event 3 cannot be read"):
        read_events(path)


@pytest.fixture
def other_process() -> Iterator[subprocess.Popen[str]]:
    """Python, which runs one line after another that it is sent, and answers each with a line."""
    source = "import sys\nfor line in sys.stdin:\n exec(line)\n print('done', flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def test_a_second_writer_is_refused_at_once(path: Path) -> None:
    """In this process, under any name of the file; reading goes on, and afterwards the file is free."""
    link = path.with_name("link.db")
    link.symlink_to(path)

    async def main() -> None:
        async with open_sqlite_journal(path) as journal:
            for name in (path, link):
                with trio.fail_after(1), pytest.raises(JournalLockedError, match="has a writer already"):
                    async with open_sqlite_journal(name):
                        raise AssertionError
                with pytest.raises(JournalLockedError, match="has a writer already"):
                    repair(name)
                assert read_events(name) == EVENTS
            journal.append(EVENTS[0])
        async with open_sqlite_journal(link):
            pass

    trio.run(main)
    assert read_events(path) == [*EVENTS, EVENTS[0]]


def test_a_second_writer_in_another_process_is_refused(path: Path, other_process: subprocess.Popen[str]) -> None:
    """Until the first ends, however it ends."""
    tell(other_process, f"from quiesce.journal._sqlite_writer import open_writer; writer = open_writer({str(path)!r})")
    with pytest.raises(JournalLockedError, match="has a writer already"):
        open_briefly(path)
    assert read_events(path) == EVENTS
    other_process.kill()
    other_process.wait()
    open_briefly(path)


@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE"])
def test_a_file_that_another_program_has_locked_is_refused(
    path: Path, other_process: subprocess.Popen[str], begin: str
) -> None:
    """A clear error at once; when the other program is done, all is well."""
    tell(other_process, f"import sqlite3; c = sqlite3.connect({str(path)!r}, isolation_level=None)")
    for statement in begin.split(";"):
        tell(other_process, f"c.execute({statement!r})")
    with pytest.raises(JournalLockedError, match="is locked by another program; end that program"):
        open_briefly(path)
    tell(other_process, "c.close()")
    open_briefly(path)
    assert read_events(path) == EVENTS


async def test_readers_see_what_is_flushed_while_the_writer_writes(path: Path) -> None:
    """One moment of the file, whole events only, in this process and without an effect on the writer."""
    async with open_sqlite_journal(path) as journal:
        for number in range(20):
            journal.append(attrs.evolve(EVENTS[0], batch=f"n{number}"))
            assert len(read_events(path)) == 40 + number
            await journal.flush()
            assert len(read_events(path)) == 41 + number
    assert len(batches(path)) == 60


def test_reading_leaves_nothing_behind(path: Path) -> None:
    """Of a file that nobody has open, not a byte changes, nor is a file added."""
    before = files_in(path.parent)
    read_events(path)
    batches(path)
    replay(path)
    assert files_in(path.parent) == before


@pytest.mark.parametrize("torn", [False, True])
def test_a_file_that_changes_while_it_is_read_is_read_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, torn: bool
) -> None:
    """A reader that believed the file unused, and was wrong, trusts neither what it saw nor what it could not see."""
    reads: list[str] = []
    read = _sqlite_file._query  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def and_a_writer_comes(path: Path, options: str, *rest: object) -> object:
        rows = read(path, options, *rest)  # type: ignore[arg-type]
        reads.append(options)
        if len(reads) == 1:
            database(path, "INSERT INTO events SELECT 40, batch, type, event FROM events WHERE seq = 0")
            if torn:
                raise _sqlite_file.damaged(path, "it is being written")
        return rows

    monkeypatch.setattr(_sqlite_file, "_query", and_a_writer_comes)
    assert read_events(path) == [*EVENTS, EVENTS[0]]
    assert reads == ["mode=ro&immutable=1", "mode=ro"]


def test_a_lock_that_cannot_be_had_is_told(path: Path) -> None:
    """Whatever lies where the lock should be is not touched, and reading needs no lock."""
    lock = path.with_name("journal.db-lock")
    lock.write_text("no database", encoding="utf-8")
    with pytest.raises(JournalFileError, match=r"cannot be locked: .*; see that 'journal\.db-lock' may be written"):
        open_briefly(path)
    assert lock.read_text(encoding="utf-8") == "no database"
    assert read_events(path) == EVENTS


def test_a_header_that_cannot_be_read_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as if the file were somebody else's."""

    def refuse(*args: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(_sqlite_file, "connect", refuse)
    with pytest.raises(JournalFileError, match="cannot be opened: disk I/O error"):
        read_events(path)


def test_a_copy_that_sqlite_made_is_a_journal(path: Path) -> None:
    """``VACUUM INTO`` is a sound way to copy a journal, also one that is in use; the copy can be read and written."""
    copy = path.with_name("copy.db")
    database(path, f"VACUUM INTO '{copy}'")
    assert read_events(copy) == EVENTS
    write(copy)
    assert read_events(copy) == EVENTS * 2


def test_a_checkpoint_that_was_cut_short_is_no_damage(tmp_path: Path, other_process: subprocess.Popen[str]) -> None:
    """The header may count pages that only the log has; then the log is read."""
    path = tmp_path / "journal.db"
    tell(other_process, f"from quiesce.journal._sqlite_writer import open_writer; writer = open_writer({str(path)!r})")
    rows = [("b", "t", "x" * 3000)] * 3
    tell(other_process, f"writer.write({rows!r})")
    other_process.kill()
    other_process.wait()
    with path.open("r+b") as file:
        file.seek(28)
        file.write((1000).to_bytes(4, "big"))
    with pytest.raises(JournalFileError, match="event 0 cannot be read"):  # so it came as far as the events
        read_events(path)
    open_briefly(path)


def test_a_killed_writers_log_is_read_and_not_changed(tmp_path: Path, other_process: subprocess.Popen[str]) -> None:
    """What was flushed is in the write-ahead log; reading leaves file and log to the next writer."""
    path = tmp_path / "journal.db"
    write(path)
    tell(other_process, "from quiesce.journal import *; from quiesce.journal._sqlite_writer import *")
    tell(other_process, f"writer = open_writer({str(path)!r}); rows = [row_of(e) for e in read_events(writer.path)]")
    tell(other_process, "writer.write(rows)")
    other_process.kill()
    other_process.wait()
    before = {name: content for name, content in files_in(tmp_path).items() if not name.endswith("-shm")}
    assert read_events(path) == EVENTS * 2
    after = {name: content for name, content in files_in(tmp_path).items() if not name.endswith("-shm")}
    assert after == before
    assert len(before["journal.db-wal"]) > 0
    path.with_name("journal.db-shm").unlink()
    assert read_events(path) == EVENTS * 2
    open_briefly(path)
    assert sorted(files_in(tmp_path)) == ["journal.db", "journal.db-lock"]
    assert read_events(path) == EVENTS * 2


def test_a_name_may_have_any_character(tmp_path: Path) -> None:
    """What means something in a URI is only a name here, and so are bytes that are no UTF-8."""
    for name in ("a?mode=memory#x.db", "100%41.db", "é ü.db", os.fsdecode(b"\xff.db")):
        write(tmp_path / name)
        assert read_events(tmp_path / name) == EVENTS
        assert tmp_path / name in tmp_path.iterdir()


def test_the_application_id_is_a_word() -> None:
    """So that a look at the file's first bytes tells whose it is."""
    assert APPLICATION_ID.to_bytes(4, "big") == b"quis"
    assert SqliteJournal.__doc__
