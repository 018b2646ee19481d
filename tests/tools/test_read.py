"""``read`` shows windows of text files and says exactly how many lines there are."""

from __future__ import annotations

import errno
import os
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from quiesce.errors import ToolArgsError, ToolError
from quiesce.registry import PARALLEL, Arguments, JsonValue, ToolDefinition, freeze
from quiesce.tools import read_tool
from quiesce.tools._text_window import read_window

CallTool = Callable[..., Awaitable[Any]]


@pytest.fixture
def read(tmp_path: Path) -> ToolDefinition:
    """The tool."""
    return read_tool(tmp_path)


def no_checkpoint() -> None:
    """For reading outside a worker thread."""


def test_its_parameters_are_those_of_the_catalogue(read: ToolDefinition) -> None:
    """Names, types and what is required are fixed."""
    properties = cast("dict[str, dict[str, JsonValue]]", read.parameters["properties"])
    assert {name: node["type"] for name, node in properties.items()} == {
        "file_path": "string",
        "offset": "number",
        "limit": "number",
    }
    assert list(cast("list[str]", read.parameters["required"])) == ["file_path"]
    assert read.concurrency == PARALLEL


async def test_a_whole_file_is_shown_with_numbers(read: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """Value, text and card of a short file."""
    (tmp_path / "a.py").write_text("one\ntwo\n")
    called = await call_tool(read, file_path="a.py")
    lines = [{"number": 1, "text": "one"}, {"number": 2, "text": "two"}]
    assert called.value == {"path": "a.py", "offset": 1, "lines": lines, "totalLines": 2}
    assert called.text == (
        "<path>a.py</path>\n<type>file</type>\n<content>\n1: one\n2: two\n\n(End of file - total 2 lines)\n</content>"
    )
    assert called.card == {"type": "read", "lang": "python", **called.value}


async def test_a_window_says_where_it_goes_on(read: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """Offset and limit choose the lines, also given as whole floats; the footer names the next offset."""
    (tmp_path / "a").write_text("\n".join("abcdefgh"))
    called = await call_tool(read, file_path=str(tmp_path / "a"), offset=3.0, limit=2)
    assert [line["text"] for line in called.value["lines"]] == ["c", "d"]
    assert called.text.endswith("3: c\n4: d\n\n(Showing lines 3-4 of 8. Use offset=5 to continue.)\n</content>")
    assert "lang" not in called.meta
    called = await call_tool(read, file_path="a", offset=7, limit=2)
    assert called.text.endswith("\n8: h\n\n(End of file - total 8 lines)\n</content>")


async def test_a_window_has_at_most_50_kib(read: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """Long windows stop before the limit in bytes, and say so."""
    (tmp_path / "a").write_text(("é" * 511 + "x\n") * 100)
    called = await call_tool(read, file_path="a")
    assert len(called.value["lines"]) == 50
    assert called.value["totalLines"] == 100
    assert "(Output capped at 50 KiB. Showing lines 1-50 of 100. Use offset=51 to continue.)" in called.text


async def test_a_long_line_is_cut(read: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """A line has at most 2,000 characters; one of exactly 2,000 is whole, whatever its line break."""
    whole = "é" * 2000
    (tmp_path / "a").write_bytes(f"{whole}\n{whole}\r\n{whole}x\n{whole}\rx\nshort".encode())
    called = await call_tool(read, file_path="a")
    cut = f"{whole}... (line truncated to 2000 chars)"
    assert [line["text"] for line in called.value["lines"]] == [whole, whole, cut, cut, "short"]


async def test_only_line_feeds_end_lines(read: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """A CR before it goes; other separators are text."""
    (tmp_path / "a").write_bytes("a\r\nb\rc\u2028d\x0ce\n\n".encode())
    called = await call_tool(read, file_path="a")
    assert [line["text"] for line in called.value["lines"]] == ["a", "b\rc\u2028d\x0ce", ""]


async def test_an_empty_file_is_fine(read: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """It has no lines, and line 1 is not past its end."""
    (tmp_path / "a").touch()
    called = await call_tool(read, file_path="a")
    assert called.value == {"path": "a", "offset": 1, "lines": [], "totalLines": 0}
    assert called.text.endswith("<content>\n\n(End of file - total 0 lines)\n</content>")


@pytest.mark.parametrize(("content", "offset"), [(b"", 2), (b"a\n", 2), (b"a\nb", 3)])
async def test_an_offset_past_the_end_is_an_error(
    read: ToolDefinition, call_tool: CallTool, tmp_path: Path, content: bytes, offset: int
) -> None:
    """There is nothing to show, and the message tells how many lines there are."""
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ToolError, match="past the end") as caught:
        await call_tool(read, file_path="a", offset=offset)
    assert caught.value.code == "FS_NOT_FOUND"


@pytest.mark.parametrize(
    ("given", "violation"),
    [
        ({"offset": 0}, '"offset" must be a whole number of at least 1'),
        ({"offset": 1.5}, '"offset" must be a whole number of at least 1'),
        ({"limit": -1}, '"limit" must be a whole number of at least 1'),
        ({"limit": 2001}, '"limit" must be at most 2000'),
    ],
)
async def test_a_window_must_be_whole_numbers_in_range(
    read: ToolDefinition, call_tool: CallTool, given: dict[str, Any], violation: str
) -> None:
    """What the schema cannot say is said in the same form."""
    with pytest.raises(ToolArgsError) as caught:
        await call_tool(read, file_path="a", **given)
    assert (caught.value.code, caught.value.violations) == ("INVALID_ARGS", (violation,))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("missing", "FS_NOT_FOUND"),
        ("text/below", "FS_NOT_FOUND"),
        ("nul\0name", "FS_NOT_FOUND"),
        ("\ud800", "FS_NOT_FOUND"),
        ("x" * 300, "FS_IO_ERROR"),
        ("loop", "FS_IO_ERROR"),
        (".", "FS_NOT_REGULAR_FILE"),
        ("fifo", "FS_NOT_REGULAR_FILE"),
        ("/dev/null", "FS_NOT_REGULAR_FILE"),
        ("early-nul", "FS_NOT_TEXT"),
        ("latin", "FS_NOT_TEXT"),
        ("late-latin", "FS_NOT_TEXT"),
        ("half", "FS_NOT_TEXT"),
    ],
)
async def test_what_cannot_be_read_has_its_code(
    read: ToolDefinition, call_tool: CallTool, tmp_path: Path, name: str, code: str
) -> None:
    """Missing, special and non-text files each have a code; a FIFO does not block."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "text").write_text("x")
    (tmp_path / "early-nul").write_bytes(b"x" * 8191 + b"\0")
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")
    (tmp_path / "late-latin").write_bytes(b"x\n" * 500_000 + b"\xe9\n")
    (tmp_path / "half").write_bytes("é".encode()[:1])
    with pytest.raises(ToolError) as caught:
        await call_tool(read, file_path=name, limit=1)
    assert caught.value.code == code


async def test_a_nul_far_into_a_file_is_text(read: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """Only the first 8,192 bytes are looked at for NUL."""
    (tmp_path / "a").write_bytes(b"x" * 8191 + b"\n\0\n")
    assert (await call_tool(read, file_path="a", offset=2)).value["lines"] == [{"number": 2, "text": "\0"}]


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.EACCES, "FS_PERMISSION_DENIED"), (errno.EIO, "FS_IO_ERROR"), (errno.EAGAIN, "FS_IO_ERROR")],
)
async def test_what_the_system_refuses_has_its_code(
    read: ToolDefinition, call_tool: CallTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: str
) -> None:
    """Simulated, since root may read anything."""

    def refusing(path: object, flags: int) -> int:
        raise OSError(number, os.strerror(number), str(path))

    (tmp_path / "a").write_text("x")
    monkeypatch.setattr(os, "open", refusing)
    with pytest.raises(ToolError) as caught:
        await call_tool(read, file_path="a")
    assert caught.value.code == code


async def test_a_special_file_is_not_opened(
    read: ToolDefinition, call_tool: CallTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening a device may already act on it."""
    opened: list[object] = []

    def opening(path: object, _flags: int) -> int:
        opened.append(path)
        raise AssertionError

    monkeypatch.setattr(os, "open", opening)
    with pytest.raises(ToolError) as caught:
        await call_tool(read, file_path="/dev/null")
    assert (caught.value.code, opened) == ("FS_NOT_REGULAR_FILE", [])


async def test_a_file_that_becomes_a_fifo_is_refused(
    read: ToolDefinition, call_tool: CallTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was opened is looked at again: it may have been replaced since it was looked at by name."""
    open_file = os.open
    (tmp_path / "a").write_text("x")
    os.mkfifo(tmp_path / "fifo")

    def opening(_path: object, flags: int) -> int:
        return open_file(tmp_path / "fifo", flags)

    monkeypatch.setattr(os, "open", opening)
    with pytest.raises(ToolError) as caught:
        await call_tool(read, file_path="a")
    assert caught.value.code == "FS_NOT_REGULAR_FILE"


async def test_a_file_of_unknown_size_is_read(read: ToolDefinition, call_tool: CallTool) -> None:
    """Files that the system states to have 0 bytes are read to their end all the same."""
    called = await call_tool(read, file_path="/proc/self/status")
    assert called.value["totalLines"] > 10


async def test_a_large_file_takes_little_memory(read: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """Thirty megabytes, one of them a single line, are counted exactly in less than six."""
    with (tmp_path / "a").open("wb") as file:
        file.write(b"x" * 1_000_000 + b"\n")
        for _ in range(29):
            file.write(b"0123456789abcdef\n" * 60_000)
    tracemalloc.start()
    try:
        called = await call_tool(read, file_path="a", offset=29 * 60_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert called.value["totalLines"] == 29 * 60_000 + 1
    assert [line["number"] for line in called.value["lines"]] == [29 * 60_000, 29 * 60_000 + 1]
    assert peak < 6_000_000


async def test_a_cancelled_reading_ends_between_chunks(read: ToolDefinition, call_tool: CallTool) -> None:
    """The worker thread notices the cancel by itself; an endless file would hold the call for ever otherwise."""
    seen = 0

    def reading(_descriptor: int, size: int) -> bytes:
        nonlocal seen
        seen += 1
        if seen == 3:
            trio.from_thread.run_sync(scope.cancel)
        return b"x\n" * (size // 2)

    with trio.CancelScope() as scope, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "read", reading)
        await call_tool(read, file_path="/etc/hosts")
    assert scope.cancelled_caught
    assert seen == 3


def test_a_call_card_names_the_file_and_the_line(read: ToolDefinition) -> None:
    """A user interface can open the place."""
    assert read.present_call is not None
    card = read.present_call(cast("Arguments", freeze({"file_path": "a.py", "offset": 7})))
    locations = [{"path": "a.py", "line": 7}]
    assert card == {"type": "generic", "title": "Read a.py", "kind": "read", "locations": locations}


@given(st.text(st.sampled_from("ab\né\r"), max_size=60), st.integers(1, 8), st.integers(1, 8), st.data())
def test_any_window_is_the_same_as_cutting_the_whole(
    tmp_path_factory: pytest.TempPathFactory, text: str, offset: int, limit: int, data: st.DataObject
) -> None:
    """However the chunks fall, the window is a slice of all the lines."""
    path = tmp_path_factory.getbasetemp() / "window"
    path.write_bytes(text.encode())
    chunk = data.draw(st.integers(1, 10))
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if text.endswith("\n") or not text:
        lines.pop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("quiesce.tools._text_window._CHUNK_BYTES", chunk)
        if offset > max(len(lines), 1):
            with pytest.raises(ToolError, match="past the end"):
                read_window(path, offset, limit, no_checkpoint)
        else:
            window = read_window(path, offset, limit, no_checkpoint)
            assert [line.text for line in window.lines] == lines[offset - 1 : offset - 1 + limit]
            assert [line.number for line in window.lines] == list(range(offset, offset + len(window.lines)))
            assert window.total == len(lines)
