"""``write`` gives a file its whole contents, in one step or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from quiesce.errors import ToolArgsError, ToolError
from quiesce.registry import EXCLUSIVE, Arguments, Claims, Success, ToolDefinition, freeze, thaw
from quiesce.tools import builtin_tools, write_tool

CallTool = Callable[..., Awaitable[Any]]

PARAMETERS = json.loads((Path(__file__).parent / "data" / "catalogue_parameters.json").read_text())
MEBIBYTE = 1024 * 1024


@pytest.fixture
def write(tmp_path: Path) -> ToolDefinition:
    """The tool."""
    return write_tool(tmp_path)


def names_in(folder: Path) -> list[str]:
    """The names of all that is in a folder."""
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("name", ["write", "edit", "str_replace_editor"])
def test_the_parameters_are_those_of_the_catalogue(tmp_path: Path, name: str) -> None:
    """Every word of the schema that a model is shown is fixed, and so is the order of the parameters."""
    tool = next(tool for tool in builtin_tools(tmp_path) if tool.name == name)
    assert json.dumps(thaw(tool.parameters)) == json.dumps(PARAMETERS[name])


async def test_a_new_file_is_created(write: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """Value, text and card of a file that was not there."""
    called = await call_tool(write, file_path="a.py", content="one\ntwo\n")
    assert (tmp_path / "a.py").read_bytes() == b"one\ntwo\n"
    assert called.value == {"path": "a.py", "operation": "create", "before": None, "after": "one\ntwo\n"}
    assert called.text == "<path>a.py</path>\n<type>file</type>\n<content>\nCreated file\n</content>"
    diff = {"path": "a.py", "line": 1, "oldText": None, "newText": "one\ntwo\n"}
    assert called.card == {"type": "diff", "title": "Created file a.py", "diffs": [diff], "truncated": False}


async def test_an_existing_file_is_replaced(write: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """The value has the old text, the card a hunk with three lines of context."""
    (tmp_path / "a").write_text("".join(f"{n}\n" for n in range(10)))
    called = await call_tool(write, file_path=str(tmp_path / "a"), content="0\n1\n2\n3\n4\nfive\n6\n7\n8\n9\n")
    assert (tmp_path / "a").read_text() == called.value["after"]
    assert (called.value["path"], called.value["operation"]) == ("a", "update")
    assert called.value["before"].startswith("0\n1\n2")
    assert "Updated file" in called.text
    diff = {"path": "a", "line": 3, "oldText": "2\n3\n4\n5\n6\n7\n8", "newText": "2\n3\n4\nfive\n6\n7\n8"}
    assert called.card["diffs"] == [diff]


@pytest.mark.parametrize("content", ["", "\ufeffx", "a\r\nb\rc\n", "no end", "nul\0", "\U0001f600\u2028"])
async def test_contents_are_written_exactly(
    write: ToolDefinition, call_tool: CallTool, tmp_path: Path, content: str
) -> None:
    """No line break, byte order mark or anything is added, changed or dropped; empty is fine."""
    await call_tool(write, file_path="a", content=content)
    assert (tmp_path / "a").read_bytes() == content.encode()


async def test_half_a_surrogate_pair_is_refused(write: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """JSON can write it, UTF-8 cannot; nothing is written."""
    with pytest.raises(ToolArgsError) as caught:
        await call_tool(write, file_path="a", content="x\ud800")
    assert caught.value.violations == ('"content" must be text that UTF-8 can encode',)
    assert names_in(tmp_path) == []


async def test_a_new_file_is_private_and_an_old_one_keeps_its_mode(
    write: ToolDefinition, call_tool: CallTool, tmp_path: Path
) -> None:
    """New files have 0600, whatever the umask; replaced ones what they had, the special bits too."""
    await call_tool(write, file_path="new", content="x")
    (tmp_path / "old").touch()
    (tmp_path / "old").chmod(0o4751)
    await call_tool(write, file_path="old", content="x")
    assert [(tmp_path / name).stat().st_mode & 0o7777 for name in ("new", "old")] == [0o600, 0o4751]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
async def test_an_old_file_keeps_its_owner(write: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """Root that edits somebody's file does not take it away from them."""
    (tmp_path / "old").touch()
    os.chown(tmp_path / "old", 1234, 2345)
    await call_tool(write, file_path="old", content="x")
    found = (tmp_path / "old").stat()
    assert (found.st_uid, found.st_gid) == (1234, 2345)


async def test_a_link_stays_and_its_target_changes(write: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """Also one that leads nowhere yet: it leads to the new file then."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "target").write_text("old")
    (tmp_path / "link").symlink_to("sub/target")
    (tmp_path / "broken").symlink_to("sub/fresh")
    called = await call_tool(write, file_path="link", content="new")
    assert (called.value["path"], called.value["operation"]) == ("link", "update")
    assert (await call_tool(write, file_path="broken", content="new")).value["operation"] == "create"
    assert [(tmp_path / name).is_symlink() for name in ("link", "broken")] == [True, True]
    assert [(tmp_path / "sub" / name).read_text() for name in ("target", "fresh")] == ["new", "new"]


async def test_another_name_of_the_file_keeps_the_old_contents(
    write: ToolDefinition, call_tool: CallTool, tmp_path: Path
) -> None:
    """A new file takes the place of the old: hard links are not written through."""
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    await call_tool(write, file_path="a", content="new")
    assert [(tmp_path / name).read_text() for name in "ab"] == ["new", "old"]


@pytest.mark.parametrize("old", [b"\xff\xfe", b"x" * 10 * MEBIBYTE])
async def test_what_is_no_text_or_large_is_replaced_without_its_old_contents(
    write: ToolDefinition, call_tool: CallTool, tmp_path: Path, old: bytes
) -> None:
    """``before`` is only kept where it is text of less than 10 MiB; the card says that something is left out."""
    (tmp_path / "a").write_bytes(old)
    called = await call_tool(write, file_path="a", content="new")
    assert (called.value["operation"], called.value["before"]) == ("update", None)
    assert called.card == {"type": "diff", "title": "Updated file a", "diffs": [], "truncated": True}
    assert (tmp_path / "a").read_text() == "new"


async def test_large_contents_are_written_and_the_old_not_kept(
    write: ToolDefinition, call_tool: CallTool, tmp_path: Path
) -> None:
    """There is no limit to what is written, only to what is kept of before: both must be under 10 MiB."""
    (tmp_path / "a").write_text("old")
    below = "x" * (10 * MEBIBYTE - 1)
    assert (await call_tool(write, file_path="a", content=below)).value["before"] == "old"
    called = await call_tool(write, file_path="a", content=below + "x")
    assert called.value["before"] is None
    assert (tmp_path / "a").stat().st_size == 10 * MEBIBYTE


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (".", "FS_NOT_REGULAR_FILE"),
        ("", "FS_NOT_REGULAR_FILE"),
        ("fifo", "FS_NOT_REGULAR_FILE"),
        ("/dev/null", "FS_NOT_REGULAR_FILE"),
        ("missing/a", "FS_NOT_FOUND"),
        ("text/below", "FS_NOT_DIRECTORY"),
        ("text/below/deeper", "FS_NOT_DIRECTORY"),
        ("loop", "FS_IO_ERROR"),
        ("loop/a", "FS_IO_ERROR"),
        ("x" * 300, "FS_IO_ERROR"),
        ("nul\0name", "FS_NOT_FOUND"),
        ("\ud800", "FS_NOT_FOUND"),
    ],
)
async def test_where_nothing_can_be_written_has_its_code(
    write: ToolDefinition, call_tool: CallTool, tmp_path: Path, name: str, code: str
) -> None:
    """Each refusal has a code, does not block, and leaves the folder as it was."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "text").write_text("x")
    before = names_in(tmp_path)
    with pytest.raises(ToolError) as caught:
        await call_tool(write, file_path=name, content="new")
    assert caught.value.code == code
    assert names_in(tmp_path) == before
    assert (tmp_path / "text").read_text() == "x"


async def test_a_name_that_is_not_utf_8_is_written(write: ToolDefinition, call_tool: CallTool, tmp_path: Path) -> None:
    """Such bytes are lone surrogates in the argument, as in what ``glob`` lists."""
    called = await call_tool(write, file_path="\udcff", content="x")
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff"]  # noqa: PTH208 - names as bytes
    assert called.value["path"] == "\udcff"


def test_calls_claim_the_file_that_the_path_means(write: ToolDefinition, tmp_path: Path) -> None:
    """Two spellings of one file conflict; a path that leads nowhere certain is exclusive."""
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "loop").symlink_to("loop")
    claims = cast("Callable[[Arguments], Claims]", write.concurrency)

    def of(path: str) -> Claims:
        return claims(cast("Arguments", freeze({"file_path": path, "content": ""})))

    assert of("a") == of("link") == of("./x/../a") == Claims.path(write=tmp_path / "a")
    assert of("b") != of("a")
    assert of("loop") == of("nul\0") == of("\ud800") == EXCLUSIVE


def test_a_call_card_shows_the_new_text(write: ToolDefinition) -> None:
    """A person can look at it before it happens."""
    assert write.present_call is not None
    card = write.present_call(cast("Arguments", freeze({"file_path": "a", "content": "x"})))
    diffs = [{"path": "a", "oldText": None, "newText": "x"}]
    assert card == {"type": "diff", "title": "Write a", "diffs": diffs, "locations": [{"path": "a"}]}


def test_old_metadata_gives_no_card(write: ToolDefinition) -> None:
    """Presenters are also given what other versions wrote."""
    assert write.present_result is not None
    outcome = Success("c1", "write", 0, None, (), {"something": "else"})
    assert write.present_result(cast("Arguments", freeze({})), outcome) is None
