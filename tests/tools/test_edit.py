"""``edit`` replaces literal text in a file, in one step or not at all."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiesce.errors import ToolArgsError, ToolError
from quiesce.registry import Arguments, Claims, ToolDefinition, freeze
from quiesce.tools import edit_tool
from quiesce.tools._text_edit import Replacement, change_text, inserted, lines_of

CallTool = Callable[..., Awaitable[Any]]

MEBIBYTE = 1024 * 1024


@pytest.fixture
def edit(tmp_path: Path) -> ToolDefinition:
    """The tool."""
    return edit_tool(tmp_path)


def names_in(folder: Path) -> list[str]:
    """The names of all that is in a folder."""
    return sorted(path.name for path in folder.iterdir())


def no_checkpoint() -> None:
    """For changes outside a worker thread."""


async def test_the_only_match_is_replaced(edit: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """Value, text and card; the file keeps its mode."""
    (tmp_path / "a.py").write_text("one\ntwo\nthree\n")
    (tmp_path / "a.py").chmod(0o640)
    called = await call_tool(edit, file_path="a.py", old_string="two", new_string="zwei")
    assert called.value == {"path": "a.py", "before": "one\ntwo\nthree\n", "after": "one\nzwei\nthree\n"}
    assert (tmp_path / "a.py").read_text() == called.value["after"]
    assert (tmp_path / "a.py").stat().st_mode & 0o7777 == 0o640
    assert called.text == "Replaced 1 match in a.py"
    diff = {"path": "a.py", "line": 1, "oldText": "one\ntwo\nthree", "newText": "one\nzwei\nthree"}
    assert called.card == {"type": "diff", "title": "Edited a.py", "diffs": [diff], "truncated": False}


async def test_all_matches_are_replaced_if_asked(edit: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """From the left, without overlap; each place is a hunk of its own."""
    text = "aaa\n" + "-\n" * 20 + "a\n"
    (tmp_path / "a").write_text(text)
    called = await call_tool(edit, file_path="a", old_string="a", new_string="", replace_all=True)
    assert (tmp_path / "a").read_text() == text.replace("a", "")
    assert called.text == "Replaced 4 matches in a"
    assert [diff["line"] for diff in called.card["diffs"]] == [1, 19]


@pytest.mark.parametrize(
    ("text", "old", "code"),
    [
        ("one\n", "two", "FS_EDIT_NOT_FOUND"),
        ("", "x", "FS_EDIT_NOT_FOUND"),
        ("one\n", "one\n\n", "FS_EDIT_NOT_FOUND"),
        ("x\nx\n", "x", "FS_AMBIGUOUS_EDIT"),
        ("aaa", "aa", "FS_AMBIGUOUS_EDIT"),
    ],
)
async def test_what_does_not_match_once_is_refused(
    edit: ToolDefinition, call_tool: CallTool, tmp_path: Path, text: str, old: str, code: str
) -> None:
    """Matches that overlap are as unclear as others; the file stays."""
    (tmp_path / "a").write_text(text)
    version = (tmp_path / "a").stat()
    with pytest.raises(ToolError) as caught:
        await call_tool(edit, file_path="a", old_string=old, new_string="new")
    assert caught.value.code == code
    assert (tmp_path / "a").stat() == version


async def test_an_ambiguous_edit_says_where_and_what_to_do(
    edit: ToolDefinition, call_tool: CallTool, tmp_path: Path
) -> None:
    """The first twenty matches are listed by line."""
    (tmp_path / "a").write_text("x x\n-\nx\n")
    with pytest.raises(ToolError, match=r"starts on lines 1, 3; add text .* or set replace_all"):
        await call_tool(edit, file_path="a", old_string="x", new_string="y")
    (tmp_path / "a").write_text("x\n" * 50)
    with pytest.raises(ToolError, match=r"19, 20, \.\.\.;"):
        await call_tool(edit, file_path="a", old_string="x", new_string="y")


@pytest.mark.parametrize(
    ("given", "violation"),
    [
        ({"old_string": "", "new_string": "x"}, '"old_string" must not be empty'),
        ({"old_string": "x", "new_string": "x"}, '"new_string" must differ from "old_string" in more than line breaks'),
        (
            {"old_string": "x\r\n", "new_string": "x\n"},
            '"new_string" must differ from "old_string" in more than line breaks',
        ),
        ({"old_string": "x", "new_string": "\udc80"}, '"new_string" must be text that UTF-8 can encode'),
    ],
)
async def test_strings_that_make_no_edit_are_refused(
    edit: ToolDefinition, call_tool: CallTool, given: dict[str, Any], violation: str
) -> None:
    """What the schema cannot say is said in the same form, before any file is looked at."""
    with pytest.raises(ToolArgsError) as caught:
        await call_tool(edit, file_path="missing", **given)
    assert caught.value.violations == (violation,)


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\n"),
        (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
        (b"a\r\nb\r\nc\n", "c", "d", b"a\r\nb\r\nd\r\n"),
        (b"a\r\nb\n", "a", "x", b"x\nb\n"),
        (b"a", "a", "x\n", b"x\n"),
        (b"a\rb\r\nc\r\n", "b", "x", b"a\rx\r\nc\r\n"),
        (b"\xef\xbb\xbfa\n", "a", "x", b"\xef\xbb\xbfx\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffa", "x", b"x\n"),
    ],
)
async def test_line_breaks_match_whatever_they_are_and_stay_as_they_were(
    edit: ToolDefinition, call_tool: CallTool, tmp_path: Path, before: bytes, old: str, new: str, after: bytes
) -> None:
    """Matched with LF, written with the commoner of LF and CR LF; a byte order mark is a character."""
    (tmp_path / "a").write_bytes(before)
    called = await call_tool(edit, file_path="a", old_string=old, new_string=new)
    assert (tmp_path / "a").read_bytes() == after
    assert (called.value["before"].encode(), called.value["after"].encode()) == (before, after)


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
        ("late-nul", "FS_NOT_TEXT"),
        ("latin", "FS_NOT_TEXT"),
        ("large", "FS_TOO_LARGE"),
    ],
)
async def test_what_cannot_be_edited_has_its_code(
    edit: ToolDefinition, call_tool: CallTool, tmp_path: Path, name: str, code: str
) -> None:
    """Missing, special, large and non-text files each have a code; a NUL anywhere is enough."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "text").write_text("x")
    (tmp_path / "early-nul").write_bytes(b"x\0")
    (tmp_path / "late-nul").write_bytes(b"x" + b"\n" * 10_000 + b"\0")
    (tmp_path / "latin").write_bytes(b"x\xe9\n")
    (tmp_path / "large").write_bytes(b"x" + b"\n" * (10 * MEBIBYTE - 1))
    before = names_in(tmp_path)
    with pytest.raises(ToolError) as caught:
        await call_tool(edit, file_path=name, old_string="x", new_string="y")
    assert caught.value.code == code
    assert names_in(tmp_path) == before


async def test_an_edit_makes_no_nul_and_no_large_file(
    edit: ToolDefinition, call_tool: CallTool, tmp_path: Path
) -> None:
    """What could not be edited again is not made; a result that no memory could hold is not begun."""
    text = "x" * MEBIBYTE
    (tmp_path / "a").write_text(text)
    for new, code in (("\0", "FS_NOT_TEXT"), ("y" * 11, "FS_TOO_LARGE"), ("é" * 6, "FS_TOO_LARGE")):
        with pytest.raises(ToolError) as caught:
            await call_tool(edit, file_path="a", old_string="x", new_string=new, replace_all=True)
        assert caught.value.code == code
    with pytest.raises(ToolError) as caught:
        await call_tool(edit, file_path="a", old_string="x", new_string="y" * MEBIBYTE, replace_all=True)
    assert caught.value.code == "FS_TOO_LARGE"
    assert (tmp_path / "a").read_text() == text


async def test_a_link_stays_and_its_target_changes(edit: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """The file behind it is edited."""
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    await call_tool(edit, file_path="link", old_string="old", new_string="new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


async def test_a_large_change_has_a_short_card(edit: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """Texts too long to compare line by line are one hunk, and one beyond 64 Ki characters is left out."""
    (tmp_path / "a").write_text("x\n" * 1000)
    called = await call_tool(edit, file_path="a", old_string="x", new_string="y", replace_all=True)
    assert [(diff["line"], len(diff["newText"])) for diff in called.card["diffs"]] == [(1, 1999)]
    (tmp_path / "a").write_text("x\n")
    called = await call_tool(edit, file_path="a", old_string="x", new_string="y" * 70_000)
    assert (called.card["diffs"], called.card["truncated"]) == ([], True)


def test_a_call_card_shows_both_texts(edit: ToolDefinition) -> None:
    """A person can look at it before it happens."""
    assert edit.present_call is not None
    card = edit.present_call(cast("Arguments", freeze({"file_path": "a", "old_string": "x", "new_string": "y"})))
    diffs = [{"path": "a", "oldText": "x", "newText": "y"}]
    assert card == {"type": "diff", "title": "Edit a", "diffs": diffs, "locations": [{"path": "a"}]}


def test_calls_claim_the_file(edit: ToolDefinition, tmp_path: Path) -> None:
    """Edits of one file conflict, edits of others do not."""
    claims = cast("Callable[[Arguments], Claims]", edit.concurrency)
    arguments = freeze({"file_path": "a", "old_string": "x", "new_string": "y"})
    assert claims(cast("Arguments", arguments)) == Claims.path(write=tmp_path / "a")


TEXTS = st.text(st.sampled_from("ab\n\r"), max_size=20)


@given(TEXTS, st.text(st.sampled_from("ab\n"), min_size=1, max_size=3), TEXTS, st.booleans())
def test_an_edit_is_a_replacement_in_the_normalised_text(
    tmp_path_factory: pytest.TempPathFactory, text: str, old: str, new: str, everywhere: bool
) -> None:
    """For any text: what LF-normalised text would become, and one kind of line break after it."""
    path = tmp_path_factory.getbasetemp() / "edited"
    path.write_bytes(text.encode())
    plain = text.replace("\r\n", "\n")
    starts = [place for place in range(len(plain)) if plain.startswith(old, place)]
    replacement = Replacement("edited", old, new, "old_string", everywhere)
    if len(starts) == 1 or (everywhere and starts):
        changed = change_text(path, replacement, no_checkpoint)
        wanted = plain.replace(old, new.replace("\r\n", "\n"))
        crlf = text.count("\r\n")
        wanted = wanted.replace("\n", "\r\n") if crlf > text.count("\n") - crlf else wanted
        assert (changed.before, changed.after, path.read_bytes()) == (text, wanted, wanted.encode())
    else:
        with pytest.raises(ToolError) as caught:
            change_text(path, replacement, no_checkpoint)
        assert caught.value.code == ("FS_AMBIGUOUS_EDIT" if starts else "FS_EDIT_NOT_FOUND")
        assert path.read_bytes() == text.encode()


@given(
    st.text(st.sampled_from("ab\n"), max_size=12), st.text(st.sampled_from("ab\n"), min_size=1, max_size=6), st.data()
)
def test_an_insertion_adds_whole_lines_and_nothing_else(text: str, new: str, data: st.DataObject) -> None:
    """The lines before and after it are the same; the last keeps its line break, or its lack of one."""
    lines = lines_of(text)
    after = data.draw(st.integers(0, len(lines)))
    changed = inserted(text, after, new)
    assert changed.removesuffix("\n").split("\n") == [
        *lines[:after],
        *new.removesuffix("\n").split("\n"),
        *lines[after:],
    ]
    at_open_end = after == len(lines) and not text.endswith("\n")
    assert (changed.removesuffix("\n") != changed) == (new if at_open_end else text).endswith("\n")
