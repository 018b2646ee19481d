"""``str_replace_editor`` views, creates and edits files by commands."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from quiesce.errors import ToolArgsError, ToolError
from quiesce.registry import PARALLEL, Arguments, Claims, JsonValue, ToolDefinition, freeze
from quiesce.tools import str_replace_editor_tool

Run = Callable[..., Awaitable[str]]


@pytest.fixture
def editor(tmp_path: Path) -> ToolDefinition:
    """The tool."""
    return str_replace_editor_tool(tmp_path)


@pytest.fixture
def run(editor: ToolDefinition, call_tool: Callable[..., Awaitable[Any]], tmp_path: Path) -> Run:
    """Runs a command on a name in the folder, and gives its text, which is its value."""

    async def run(command: str, name: str, **rest: Any) -> str:
        called = await call_tool(editor, command=command, path=str(tmp_path / name), **rest)
        assert called.value == called.text
        return cast("str", called.text)

    return run


def names_in(folder: Path) -> list[str]:
    """The names of all that is in a folder."""
    return sorted(path.name for path in folder.iterdir())


async def test_a_file_is_viewed_with_numbers(run: Run, tmp_path: Path) -> None:
    """A header with the total, numbers six wide, two spaces, the text."""
    (tmp_path / "a").write_text("one\r\n\n\tthree")
    assert await run("view", "a") == f"{tmp_path}/a (total 3 lines)\n     1  one\n     2  \n     3  \tthree"
    (tmp_path / "a").write_text("")
    assert await run("view", "a") == f"{tmp_path}/a (total 0 lines)"


@pytest.mark.parametrize(
    ("lines", "shown"), [([2, 3], [2, 3]), ([3, -1], [3, 4]), ([1, 99], [1, 2, 3, 4]), ([4, 4], [4])]
)
async def test_a_range_of_lines_is_viewed(run: Run, tmp_path: Path, lines: list[int], shown: list[int]) -> None:
    """Both ends included, -1 is the end; what lies beyond it is not there to be shown."""
    (tmp_path / "a").write_text("1\n2\n3\n4\n")
    text = await run("view", "a", view_range=lines)
    assert text == f"{tmp_path}/a (total 4 lines)" + "".join(f"\n     {n}  {n}" for n in shown)


@pytest.mark.parametrize("lines", [[], [1], [0, 1], [3, 2], [1, -2], [1, 2, 3], [-1, -1]])
async def test_a_range_that_is_none_is_refused(run: Run, tmp_path: Path, lines: list[int]) -> None:
    """Two numbers, from 1, in order."""
    (tmp_path / "a").write_text("1\n2\n3\n4\n")
    with pytest.raises(ToolArgsError, match="two line numbers"):
        await run("view", "a", view_range=lines)


async def test_a_range_must_begin_in_the_file(run: Run, tmp_path: Path) -> None:
    """A plain message says how long the file is; line 1 of an empty file is fine."""
    (tmp_path / "a").write_text("1\n")
    with pytest.raises(ToolError, match="within the 1 lines") as caught:
        await run("view", "a", view_range=[2, -1])
    assert caught.value.code is None
    (tmp_path / "a").write_text("")
    assert await run("view", "a", view_range=[1, 5]) == f"{tmp_path}/a (total 0 lines)"


@pytest.mark.parametrize("text", ["x" * 50_000, "é\n" * 50_000, "a\n" + "\U0001f600" * 20_000, "ab\n" * 1_000_000])
async def test_a_long_view_is_clipped(run: Run, tmp_path: Path, text: str) -> None:
    """Exactly 16,000 characters are shown, and the note; the total is exact all the same."""
    (tmp_path / "a").write_text(text)
    lines = text.removesuffix("\n").split("\n")
    whole = f"{tmp_path}/a (total {len(lines)} lines)"
    whole += "".join(f"\n{number:>6}  {line}" for number, line in enumerate(lines, 1))
    assert await run("view", "a", view_range=None) == whole[:16_000] + "\n<response clipped>"


async def test_a_folder_is_viewed_two_levels_deep(run: Run, tmp_path: Path) -> None:
    """Sorted, with a letter for the kind; hidden names and what tools generate are left out, links not followed."""
    for name in ("b/c/d", "b/.git", "node_modules/x", "__pycache__", ".hidden"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("a", "b/z", "b/c/deep"):
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("b")
    (tmp_path / "lost").symlink_to("nowhere")
    shown = [("f", "a"), ("d", "b"), ("d", "b/c"), ("f", "b/z"), ("d", "link"), ("?", "lost")]
    assert await run("view", "") == "\n".join(f"{kind}\t{tmp_path}/{name}" for kind, name in shown)
    with pytest.raises(ToolError, match="is a folder") as caught:
        await run("view", "b", view_range=[1, 2])
    assert caught.value.code is None


async def test_a_large_folder_is_clipped(run: Run, tmp_path: Path) -> None:
    """Like any other view."""
    for number in range(1000):
        (tmp_path / f"{number:04}").touch()
    whole = "\n".join(f"f\t{tmp_path}/{number:04}" for number in range(1000))
    assert await run("view", "") == whole[:16_000] + "\n<response clipped>"


async def test_a_folder_that_vanishes_does_not_end_the_view(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the tree is shown."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").touch()
    scan = os.scandir

    def scanning(folder: Path) -> Any:
        if folder.name == "a":
            raise FileNotFoundError
        return scan(folder)

    monkeypatch.setattr(os, "scandir", scanning)
    assert await run("view", "") == f"d\t{tmp_path}/a\nf\t{tmp_path}/b"


async def test_a_file_is_created_once(run: Run, tmp_path: Path) -> None:
    """A path that exists is refused with a plain message, whatever it is."""
    assert await run("create", "a", file_text="x\n") == f"Created {tmp_path}/a"
    assert (tmp_path / "a").read_text() == "x\n"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    (tmp_path / "broken").symlink_to("nowhere")
    for name in ("a", "", "broken"):
        with pytest.raises(ToolError, match="already exists") as caught:
            await run("create", name, file_text="y")
        assert caught.value.code is None
    assert (tmp_path / "a").read_text() == "x\n"
    assert names_in(tmp_path) == ["a", "broken"]


async def test_the_only_match_is_replaced(run: Run, tmp_path: Path) -> None:
    """Without ``new_str`` it is deleted."""
    (tmp_path / "a").write_text("one\ntwo\n")
    assert await run("str_replace", "a", old_str="one", new_str="1") == f"Replaced 1 match in {tmp_path}/a"
    await run("str_replace", "a", old_str="two\n")
    assert (tmp_path / "a").read_text() == "1\n"


async def test_several_matches_are_listed_by_line(run: Run, tmp_path: Path) -> None:
    """So that the model can tell which it means."""
    (tmp_path / "a").write_text("x\n-\nx\nx\n")
    with pytest.raises(ToolError, match="starts on lines 1, 3, 4; add text around it") as caught:
        await run("str_replace", "a", old_str="x", new_str="y")
    assert caught.value.code == "FS_AMBIGUOUS_EDIT"
    assert "replace_all" not in str(caught.value)
    with pytest.raises(ToolError, match="old_str does not occur") as caught:
        await run("str_replace", "a", old_str="y")
    assert caught.value.code == "FS_EDIT_NOT_FOUND"


@pytest.mark.parametrize(
    ("before", "line", "new", "after"),
    [
        (b"1\n2\n", 0, "x", b"x\n1\n2\n"),
        (b"1\n2\n", 1, "x\ny\n", b"1\nx\ny\n2\n"),
        (b"1\n2\n", 2, "x", b"1\n2\nx\n"),
        (b"1\n2", 2, "x", b"1\n2\nx"),
        (b"1\n2", 2, "x\n", b"1\n2\nx\n"),
        (b"1\n2", 0, "x\n", b"x\n1\n2"),
        (b"", 0, "x", b"x"),
        (b"", 0, "x\n", b"x\n"),
        (b"1\n", 1, "", b"1\n\n"),
        (b"1\r\n2\r\n", 1, "x\ny", b"1\r\nx\r\ny\r\n2\r\n"),
    ],
)
async def test_lines_are_inserted_after_a_line(
    run: Run, tmp_path: Path, before: bytes, line: int, new: str, after: bytes
) -> None:
    """0 is before the first; the file keeps its kind of line break, and its lack of one at the end."""
    (tmp_path / "a").write_bytes(before)
    assert await run("insert", "a", insert_line=line, new_str=new) == f"Inserted text after line {line} of {tmp_path}/a"
    assert (tmp_path / "a").read_bytes() == after


async def test_lines_are_not_inserted_after_the_end(run: Run, tmp_path: Path) -> None:
    """A plain message says how many lines there are."""
    (tmp_path / "a").write_text("1\n2\n")
    with pytest.raises(ToolError, match="from 0 to 2, the number of lines") as caught:
        await run("insert", "a", insert_line=3, new_str="x")
    assert (caught.value.code, (tmp_path / "a").read_text()) == (None, "1\n2\n")


NULLS: dict[str, JsonValue] = dict.fromkeys(["file_text", "insert_line", "new_str", "old_str", "view_range"])


async def test_a_null_is_omitted_where_it_is_not_used(run: Run, tmp_path: Path) -> None:
    """Models fill in all parameters; the others' nulls do no harm."""
    await run("create", "a", **NULLS | {"file_text": "1\n"})
    await run("str_replace", "a", **NULLS | {"old_str": "1", "new_str": "2"})
    await run("insert", "a", **NULLS | {"insert_line": 1, "new_str": "3"})
    assert (await run("view", "a", **NULLS)).endswith("\n     1  2\n     2  3")
    assert (tmp_path / "a").read_text() == "2\n3\n"


@pytest.mark.parametrize(
    ("command", "given", "violation"),
    [
        ("create", {}, '"file_text" must be a string for "create"'),
        ("create", {"file_text": None}, '"file_text" must be a string for "create"'),
        ("create", {"file_text": "\ud800"}, '"file_text" must be text that UTF-8 can encode'),
        ("str_replace", {"new_str": "x"}, '"old_str" must be a string for "str_replace"'),
        ("str_replace", {"old_str": None}, '"old_str" must be a string for "str_replace"'),
        ("str_replace", {"old_str": ""}, '"old_str" must not be empty'),
        ("str_replace", {"old_str": "x", "new_str": None}, '"new_str" must be a string for "str_replace"'),
        ("str_replace", {"old_str": "x", "new_str": "\ud800"}, '"new_str" must be text that UTF-8 can encode'),
        (
            "str_replace",
            {"old_str": "x", "new_str": "x"},
            '"new_str" must differ from "old_str" in more than line breaks',
        ),
        ("insert", {"new_str": "x"}, '"insert_line" must be a whole number of at least 0 for "insert"'),
        ("insert", {"insert_line": -1}, '"insert_line" must be a whole number of at least 0 for "insert"'),
        ("insert", {"insert_line": 0}, '"new_str" must be a string for "insert"'),
        ("insert", {"insert_line": 0, "new_str": "\ud800"}, '"new_str" must be text that UTF-8 can encode'),
    ],
)
async def test_a_parameter_that_a_command_needs_must_be_there(
    run: Run, tmp_path: Path, command: str, given: dict[str, Any], violation: str
) -> None:
    """A null for it is an error, and deleting text means leaving ``new_str`` out."""
    (tmp_path / "a").write_text("x")
    with pytest.raises(ToolArgsError) as caught:
        await run(command, "a", **given)
    assert caught.value.violations == (violation,)
    assert (tmp_path / "a").read_text() == "x"


async def test_a_relative_path_is_refused_with_what_it_may_mean(
    editor: ToolDefinition, call_tool: Callable[..., Awaitable[Any]], tmp_path: Path
) -> None:
    """The catalogue wants absolute paths; the model is told the one in the workspace."""
    with pytest.raises(ToolArgsError, match="must be an absolute path") as caught:
        await call_tool(editor, command="view", path="a")
    assert repr(str(tmp_path / "a")) in str(caught.value)


@pytest.mark.parametrize(
    ("command", "rest"),
    [("view", {}), ("str_replace", {"old_str": "x"}), ("insert", {"insert_line": 0, "new_str": "x"})],
)
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("missing", "FS_NOT_FOUND"),
        ("\ud800", "FS_NOT_FOUND"),
        ("nul\0", "FS_NOT_FOUND"),
        ("loop", "FS_IO_ERROR"),
        ("latin", "FS_NOT_TEXT"),
        ("/dev/null", "FS_NOT_REGULAR_FILE"),
    ],
)
async def test_what_is_no_text_file_has_its_code(
    run: Run, tmp_path: Path, command: str, rest: dict[str, Any], name: str, code: str
) -> None:
    """The same for every command that needs a file."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "latin").write_bytes(b"\xe9")
    with pytest.raises(ToolError) as caught:
        await run(command, name, **rest)
    assert caught.value.code == code


def test_a_view_is_parallel_and_the_rest_claims_its_file(editor: ToolDefinition, tmp_path: Path) -> None:
    """The class depends on the arguments."""
    claims = cast("Callable[[Arguments], Claims]", editor.concurrency)

    def of(command: str) -> Claims:
        return claims(cast("Arguments", freeze({"command": command, "path": str(tmp_path / "a")})))

    assert of("view") == PARALLEL
    assert of("create") == of("str_replace") == of("insert") == Claims.path(write=tmp_path / "a")


def test_each_command_has_its_card(editor: ToolDefinition) -> None:
    """View and insert are generic, create and replace are diffs; each names the place."""
    assert editor.present_call is not None

    def card(**given: JsonValue) -> Any:
        assert editor.present_call is not None
        return editor.present_call(cast("Arguments", freeze({"path": "/a", **given})))

    place: dict[str, JsonValue] = {"path": "/a"}
    assert card(command="view") == {"type": "generic", "title": "View /a", "kind": "read", "locations": [place]}
    assert card(command="create", file_text="x")["diffs"] == [{"path": "/a", "oldText": None, "newText": "x"}]
    assert card(command="str_replace", old_str="x")["diffs"] == [{"path": "/a", "oldText": "x", "newText": ""}]
    assert card(command="insert", insert_line=3, new_str="x") == {
        "type": "generic",
        "title": "Insert into /a",
        "kind": "edit",
        "locations": [{"path": "/a", "line": 4}],
    }
