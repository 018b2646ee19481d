"""``glob`` and ``grep`` find the same with ripgrep and with the Python fallback."""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest
import trio

from quiesce.errors import RegistrationError, ToolError
from quiesce.registry import PARALLEL, Arguments, JsonValue, ToolDefinition, freeze
from quiesce.tools import Ripgrep, builtin_tools, find_ripgrep, glob_tool, grep_tool

CallTool = Callable[..., Awaitable[Any]]
SignalFrom = Callable[[str], Callable[[], Awaitable[str]]]

TREE = {
    "old.py": "needle here\n",
    "src/a.py": "x\nneedle one\n",
    "src/b.ts": "needle two\nneedle three",
    "src/deep/c.py": "nothing\n",
    ".hidden/d.py": "needle hidden\n",
    ".git/config": "needle git\n",
    "build/e.py": "needle ignored\n",
    "app.log": "needle log\n",
    "keep.log": "needle kept\n",
    "with space.py": "needle space\n",
    "with\nbreak.py": "needle break\n",
    "-dash.py": "needle dash\n",
    "#hash.py": "needle hash\n",
    ".gitignore": "# comment\nbuild/\n*.log\n!keep.log\n",
}
"""The files of a sample tree and their contents, from the oldest to the newest."""

VISIBLE = [name for name in TREE if not name.startswith(".git/")]


@pytest.fixture(params=["ripgrep", "fallback"])
def ripgrep(request: pytest.FixtureRequest) -> Ripgrep:
    """Both programs that can search."""
    return cast("Path", request.getfixturevalue("ripgrep_path")) if request.param == "ripgrep" else False


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The sample tree, with binary, non-UTF-8 and special files beside the plain ones."""
    root = tmp_path / "tree"
    for age, (name, content) in enumerate(TREE.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        os.utime(path, (1_600_000_000 + age, 1_600_000_000 + age))
    return root


@pytest.fixture
def glob(tree: Path, ripgrep: Ripgrep) -> ToolDefinition:
    """The tool for the sample tree."""
    return glob_tool(tree, ripgrep=ripgrep, grace=0.1)


@pytest.fixture
def grep(tree: Path, ripgrep: Ripgrep) -> ToolDefinition:
    """The tool for the sample tree."""
    return grep_tool(tree, ripgrep=ripgrep, grace=0.1)


@pytest.fixture
def fake_ripgrep(tmp_path: Path) -> Callable[[str], Path]:
    """Make a program that takes ripgrep's place from the lines of a shell script."""

    def make(script: str) -> Path:
        program = tmp_path / "fake-rg"
        program.write_text(f"#!/bin/bash\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return program

    return make


def places(called: Any) -> list[tuple[str, int]]:
    """Path and line number of every match."""
    return [(match["path"], match["lineNumber"]) for match in called.value["matches"]]


@pytest.mark.parametrize(
    ("factory", "types", "required"),
    [
        (glob_tool, {"pattern": "string", "path": "string"}, ["pattern"]),
        (grep_tool, {"pattern": "string", "path": "string", "include": "string"}, ["pattern"]),
    ],
)
def test_their_parameters_are_those_of_the_catalogue(
    factory: Callable[..., ToolDefinition], types: dict[str, str], required: list[str], tmp_path: Path
) -> None:
    """Names, types and what is required are fixed; both declare 30 seconds and may overlap."""
    definition = factory(tmp_path)
    properties = cast("dict[str, dict[str, JsonValue]]", definition.parameters["properties"])
    assert {name: node["type"] for name, node in properties.items()} == types
    assert list(cast("list[str]", definition.parameters["required"])) == required
    assert (definition.timeout_ms, definition.concurrency) == (30_000, PARALLEL)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", VISIBLE),
        ("*.py", [name for name in VISIBLE if name.endswith(".py")]),
        ("**/*.py", [name for name in VISIBLE if name.endswith(".py")]),
        ("/*.py", [name for name in VISIBLE if name.endswith(".py") and "/" not in name]),
        ("src/*", ["src/a.py", "src/b.ts"]),
        ("src/**", ["src/a.py", "src/b.ts", "src/deep/c.py"]),
        ("src/**/c.py", ["src/deep/c.py"]),
        ("*.{ts,log}", ["src/b.ts", "app.log", "keep.log"]),
        ("[a-c].??", ["src/a.py", "src/b.ts", "src/deep/c.py"]),
        ("-dash.py", ["-dash.py"]),
        ("#hash.py", ["#hash.py"]),
        (".git/**", []),
        ("src", []),
        ("*.rs", []),
    ],
)
async def test_glob_lists_what_matches(
    glob: ToolDefinition, call_tool: CallTool, tree: Path, pattern: str, found: list[str]
) -> None:
    """Hidden and ignored files are listed, version control is not, the longest unchanged comes first."""
    called = await call_tool(glob, pattern=pattern)
    assert called.value == {"root": str(tree), "paths": found}
    assert called.text == ("\n".join(found) or "No files found")
    assert called.card == {"type": "search", "shape": "paths", "paths": found, "truncated": False, "total": len(found)}


async def test_glob_anchors_in_the_folder_it_searches(
    glob: ToolDefinition, call_tool: CallTool, tree: Path, tmp_path: Path
) -> None:
    """A pattern with a slash starts at ``path``, also through a link; paths can be handed to ``read`` as they are."""
    (tmp_path / "outside").symlink_to(tree / "src")
    assert (await call_tool(glob, pattern="deep/*", path="src")).value["paths"] == ["src/deep/c.py"]
    found = (await call_tool(glob, pattern="deep/*", path=str(tmp_path / "outside"))).value["paths"]
    assert found == [str(tmp_path / "outside/deep/c.py")]


async def test_names_that_are_not_utf8_can_be_used_again(
    glob: ToolDefinition, grep: ToolDefinition, call_tool: CallTool, tree: Path
) -> None:
    """Their bytes come back as Python writes them, as lone surrogates."""
    (tree / os.fsdecode(b"caf\xe9.rs")).write_text("needle\n")
    name = "caf\udce9.rs"
    assert (await call_tool(glob, pattern="*.rs")).value["paths"] == [name]
    assert places(await call_tool(grep, pattern="needle", include="*.rs")) == [(name, 1)]
    assert (tree / name).read_text() == "needle\n"


async def test_links_and_special_files_are_left_out(
    glob: ToolDefinition, grep: ToolDefinition, call_tool: CallTool, tree: Path
) -> None:
    """A link is not followed, a FIFO is not opened; a linked folder named by the call is searched."""
    os.mkfifo(tree / "src/fifo.rs")
    (tree / "src/link.rs").symlink_to("a.py")
    (tree / "linked").symlink_to("src")
    assert (await call_tool(glob, pattern="*.rs")).value["paths"] == []
    assert places(await call_tool(grep, pattern="one", path="linked")) == [("linked/a.py", 2)]
    assert places(await call_tool(grep, pattern="one", path="src/link.rs")) == [("src/link.rs", 2)]


async def test_a_page_of_paths_is_the_head(glob: ToolDefinition, call_tool: CallTool, tree: Path) -> None:
    """Of more than 100 paths the first 100 are shown, with a note; the value has them all."""
    for number in range(150):
        (tree / f"many{number:03}").touch()
        os.utime(tree / f"many{number:03}", (1_700_000_000 + number, 1_700_000_000 + number))
    called = await call_tool(glob, pattern="many*")
    assert len(called.value["paths"]) == 150
    page = [f"many{number:03}" for number in range(100)]
    assert called.text == "\n".join(page) + "\n\n[showing 100 of 150 paths; full list: (unavailable)]"
    assert called.card == {"type": "search", "shape": "paths", "paths": page, "truncated": True, "total": 150}


async def test_metadata_is_bounded(tmp_path: Path, call_tool: CallTool, fake_ripgrep: Callable[[str], Path]) -> None:
    """Very long paths fill the 64 KiB before the page is full; the card counts what it has."""
    program = fake_ripgrep(f'for n in $(seq 100); do printf "{tmp_path}/%04000d\\n" $n; done')
    called = await call_tool(glob_tool(tmp_path, ripgrep=program), pattern="*")
    assert len(called.value["paths"]) == 100
    assert (len(called.meta["paths"]), called.meta["truncated"]) == (16, True)


async def test_grep_lists_lines_by_file(grep: ToolDefinition, call_tool: CallTool) -> None:
    """Hidden and ignored files are left out; paths and lines are in order."""
    called = await call_tool(grep, pattern="needle (one|t)")
    assert called.value == {
        "matches": [
            {"path": "src/a.py", "lineNumber": 2, "line": "needle one"},
            {"path": "src/b.ts", "lineNumber": 1, "line": "needle two"},
            {"path": "src/b.ts", "lineNumber": 2, "line": "needle three"},
        ]
    }
    assert called.text == (
        "Found 3 matches\n\nsrc/a.py\nLine 2: needle one\n\nsrc/b.ts\nLine 1: needle two\nLine 2: needle three"
    )
    assert called.card["shape"] == "matches"
    assert (called.card["total"], called.card["truncated"]) == (3, False)


async def test_grep_respects_ignore_files(grep: ToolDefinition, call_tool: CallTool) -> None:
    """What the tree's .gitignore leaves out is not searched, unless the call includes it expressly."""
    everything = ["#hash.py", "-dash.py", "keep.log", "old.py", "src/a.py", "src/b.ts", "src/b.ts"]
    called = await call_tool(grep, pattern="needle")
    assert [path for path, _ in places(called)] == [*everything, "with\nbreak.py", "with space.py"]
    assert places(await call_tool(grep, pattern="needle", include="*.log")) == [("app.log", 1), ("keep.log", 1)]
    assert places(await call_tool(grep, pattern="needle", path="app.log")) == [("app.log", 1)]
    assert places(await call_tool(grep, pattern="needle", path="src", include="*.{ts,js}")) == [
        ("src/b.ts", 1),
        ("src/b.ts", 2),
    ]


async def test_one_match_is_singular(grep: ToolDefinition, call_tool: CallTool) -> None:
    """The count reads well, and so does its absence."""
    assert (await call_tool(grep, pattern="needle one")).text.startswith("Found 1 match\n")
    assert (await call_tool(grep, pattern="no such thing")).text == "No matches found"
    assert (await call_tool(grep, pattern=" ", include="*.rs")).text == "No matches found"


async def test_grep_reads_what_is_text(grep: ToolDefinition, call_tool: CallTool, tree: Path) -> None:
    """Byte order marks and line breaks go, other encodings are named, binary files are left out."""
    (tree / "bom.rs").write_bytes(b"\xef\xbb\xbfneedle bom\n")
    (tree / "crlf.rs").write_bytes(b"needle crlf\r\n")
    (tree / "latin.rs").write_bytes(b"needle \xff\n")
    (tree / "utf16.rs").write_bytes("needle wide\n".encode("utf-16"))
    (tree / "binary.rs").write_bytes(b"needle\n\0\n")
    called = await call_tool(grep, pattern="needle", include="*.rs")
    assert [(match["path"], match["line"]) for match in called.value["matches"]] == [
        ("bom.rs", "needle bom"),
        ("crlf.rs", "needle crlf"),
        ("latin.rs", "(line is not valid UTF-8)"),
        ("utf16.rs", "needle wide"),
    ]
    assert places(await call_tool(grep, pattern="needle", path="binary.rs")) == [("binary.rs", 1)]


async def test_a_page_of_matches_is_the_head(grep: ToolDefinition, call_tool: CallTool, tree: Path) -> None:
    """Of more than 250 matches the first 250 are shown, with a note; the value has them all."""
    (tree / "many.rs").write_text("needle\n" * 300)
    called = await call_tool(grep, pattern="needle", include="*.rs")
    assert len(called.value["matches"]) == 300
    assert called.text.startswith("Found 250 of 300 matches\n\nmany.rs\nLine 1: needle\n")
    assert called.text.endswith("\nLine 250: needle\n\n[showing 250 of 300 matches; full list: (unavailable)]")
    assert (len(called.meta["matches"]), called.meta["total"], called.meta["truncated"]) == (250, 300, True)


async def test_a_long_line_is_cut_when_shown(grep: ToolDefinition, call_tool: CallTool, tree: Path) -> None:
    """More than 2,000 bytes of a line are not shown, and no character is split; the value has the line."""
    line = "needle" + "é" * 2000
    (tree / "long.rs").write_text(line)
    called = await call_tool(grep, pattern="needle", path="long.rs")
    shown = "needle" + "é" * 997 + " (line truncated)"
    assert called.value["matches"][0]["line"] == line
    assert called.text == f"Found 1 match\n\nlong.rs\nLine 1: {shown}"
    assert called.meta["matches"][0]["line"] == shown


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("glob", {"pattern": " "}),
        ("glob", {"pattern": "["}),
        ("glob", {"pattern": "{a"}),
        ("glob", {"pattern": "a}"}),
        ("glob", {"pattern": "[z-a]"}),
        ("glob", {"pattern": "\\"}),
        ("glob", {"pattern": "a\0b"}),
        ("grep", {"pattern": ""}),
        ("grep", {"pattern": "("}),
        ("grep", {"pattern": "a\\nb"}),
        ("grep", {"pattern": "a\nb"}),
        ("grep", {"pattern": "x", "include": "["}),
        ("grep", {"pattern": "x", "include": " "}),
        ("grep", {"pattern": "x", "include": "!*.py"}),
        ("grep", {"pattern": "x", "include": "*.py,*.ts"}),
        ("grep", {"pattern": "x", "include": "{a,{b,c}},d"}),
    ],
)
async def test_a_pattern_that_is_not_valid_has_its_code(
    tree: Path, ripgrep: Ripgrep, call_tool: CallTool, tool: str, given: dict[str, JsonValue]
) -> None:
    """What no file or line could match is told apart from a search that failed."""
    definitions = {definition.name: definition for definition in builtin_tools(tree, ripgrep=ripgrep)}
    with pytest.raises(ToolError) as caught:
        await call_tool(definitions[tool], **given)
    assert caught.value.code == "SEARCH_INVALID_PATTERN"


@pytest.mark.parametrize(
    ("tool", "path"),
    [("glob", "missing"), ("glob", "old.py"), ("grep", "missing"), ("grep", "\0"), ("grep", "x" * 300)],
)
async def test_a_place_that_cannot_be_searched_has_its_code(
    tree: Path, ripgrep: Ripgrep, call_tool: CallTool, tool: str, path: str
) -> None:
    """``glob`` wants a folder, ``grep`` a folder or a file."""
    definitions = {definition.name: definition for definition in builtin_tools(tree, ripgrep=ripgrep)}
    with pytest.raises(ToolError, match="cannot search") as caught:
        await call_tool(definitions[tool], pattern="x", path=path)
    assert caught.value.code == "SEARCH_FAILED"


FAKE_MATCH = '{"type":"match","data":{"path":{"text":"a"},"lines":{"text":"x"},"line_number":1}}'


@pytest.mark.parametrize(
    ("script", "code", "says"),
    [
        ("echo broken >&2; exit 2", "SEARCH_FAILED", "broken"),
        ("exit 7", "SEARCH_FAILED", "the search ended with exit code 7"),
        ("kill -9 $$", "SEARCH_FAILED", "the search was killed by SIGKILL"),
        ("head -c 20000001 /dev/zero", "SEARCH_RAW_OUTPUT_OVERFLOW", "the search found too much"),
        ("yes", "SEARCH_RAW_OUTPUT_OVERFLOW", "the search found too much"),
        ("echo no json", "SEARCH_FAILED", "the search printed something that is not ripgrep's JSON"),
        ("echo '[]'", "SEARCH_FAILED", "the search printed something that is not ripgrep's JSON"),
        ('echo \'{"type":"match"}\'', "SEARCH_FAILED", "the search printed something that is not ripgrep's JSON"),
        (f"echo '{FAKE_MATCH}'; printf '{FAKE_MATCH[:20]}'", "SEARCH_FAILED", "the search printed something"),
    ],
)
async def test_a_search_that_fails_is_never_read_in_part(
    tmp_path: Path, fake_ripgrep: Callable[[str], Path], call_tool: CallTool, script: str, code: str, says: str
) -> None:
    """Whatever goes wrong in the program, its output so far is not passed off as the answer."""
    with pytest.raises(ToolError, match=f"^{says}") as caught:
        await call_tool(grep_tool(tmp_path, ripgrep=fake_ripgrep(script), grace=0.1), pattern="x")
    assert caught.value.code == code


async def test_a_program_that_cannot_be_started_is_a_failed_search(
    tmp_path: Path, fake_ripgrep: Callable[[str], Path], call_tool: CallTool
) -> None:
    """It was there when the tool was made and is gone when it is called."""
    program = fake_ripgrep("true")
    grep = grep_tool(tmp_path, ripgrep=program)
    program.unlink()
    with pytest.raises(ToolError, match="cannot start") as caught:
        await call_tool(grep, pattern="x")
    assert caught.value.code == "SEARCH_FAILED"


async def test_the_command_line_is_that_of_the_catalogue(
    tmp_path: Path, fake_ripgrep: Callable[[str], Path], call_tool: CallTool
) -> None:
    """No configuration file, no shell; values ride in their option or after ``--``."""
    log = tmp_path / "log"
    program = fake_ripgrep(f'printf "%s\\n" "$PWD" "$@" > {log}; exit 1')
    (tmp_path / "sub").mkdir()
    await call_tool(glob_tool(tmp_path, ripgrep=program), pattern="--pre=x", path="sub")
    names = (".git", ".svn", ".hg", ".bzr", ".jj", ".sl")
    excluded = [f"--glob=!**/{name}{rest}" for name in names for rest in ("", "/**")]
    options = ["--no-config", "--files", "--glob=--pre=x", "--sort=modified", "--no-ignore", "--hidden"]
    sub = str(tmp_path / "sub")
    assert log.read_text().splitlines() == [sub, *options, *excluded, "--", sub]
    await call_tool(grep_tool(tmp_path, ripgrep=program), pattern="--pre=x", include="-*")
    options = ["--no-config", "--json", "--regexp=--pre=x", "--glob=-*"]
    assert log.read_text().splitlines() == [str(tmp_path), *options, "--", str(tmp_path)]


async def test_a_cancelled_search_leaves_no_process(
    tmp_path: Path, fake_ripgrep: Callable[[str], Path], call_tool: CallTool, signal_from: SignalFrom
) -> None:
    """A search that traps SIGTERM is killed before the call ends; the fixture looks for what is left."""
    ready = signal_from("ready")
    program = fake_ripgrep(f"trap '' TERM; echo > {tmp_path}/ready; sleep 60; sleep 60")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: call_tool(glob_tool(tmp_path, ripgrep=program, grace=0.1), pattern="*"))
        await ready()
        nursery.cancel_scope.cancel()
    assert nursery.cancel_scope.cancelled_caught


async def test_a_pattern_that_takes_for_ever_can_be_cancelled(tmp_path: Path, call_tool: CallTool) -> None:
    """Python's expressions backtrack; the fallback does so in a process that can be ended."""
    (tmp_path / "a").write_text("a" * 60 + "b\n")
    with trio.move_on_after(0.3) as scope:
        await call_tool(grep_tool(tmp_path, ripgrep=False), pattern="^(a+)+$")
    assert scope.cancelled_caught


def executable(path: Path) -> Path:
    """An empty program."""
    path.parent.mkdir(exist_ok=True)
    path.touch(mode=0o755)
    return path


def test_ripgrep_is_looked_for_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is configured, then beside the interpreter, then on PATH, then none."""
    beside, on_path = executable(tmp_path / "venv/rg"), executable(tmp_path / "bin/rg")
    monkeypatch.setattr("sysconfig.get_path", f"{tmp_path}/no-{{}}".format)
    monkeypatch.setattr("sys.executable", str(tmp_path / "venv/python"))
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_ripgrep(on_path) == str(on_path)
    assert find_ripgrep(False) is None
    assert find_ripgrep() == str(beside)
    beside.unlink()
    assert find_ripgrep() == str(on_path)
    on_path.unlink()
    assert find_ripgrep() is None


def no_ripgrep(_configured: Ripgrep) -> None:
    """What looking for ripgrep gives on a machine without it."""


async def test_without_ripgrep_the_fallback_is_used(
    tree: Path, call_tool: CallTool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A tool that looks for ripgrep and finds none still works; without an interpreter it says what to install."""
    monkeypatch.setattr("quiesce.tools._ripgrep.find_ripgrep", no_ripgrep)
    glob = glob_tool(tree)
    assert (await call_tool(glob, pattern="src/a.*")).value["paths"] == ["src/a.py"]
    monkeypatch.setattr("sys.executable", "")
    with pytest.raises(ToolError, match="pip install 'quiesce\\[search\\]'") as caught:
        await call_tool(glob, pattern="*")
    assert caught.value.code == "SEARCH_FAILED"


def test_a_configured_program_must_be_there(tmp_path: Path) -> None:
    """A wrong path is reported when the tool is made, not at the first call."""
    with pytest.raises(RegistrationError, match="is not an executable file"):
        builtin_tools(tmp_path, ripgrep=tmp_path / "missing")


def test_call_cards_name_the_pattern_and_the_place(tmp_path: Path) -> None:
    """A user interface shows what is searched, and where if the call says so."""
    for definition, title in ((glob_tool(tmp_path), "Glob x"), (grep_tool(tmp_path), "Grep x")):
        assert definition.present_call is not None
        card: dict[str, JsonValue] = {"type": "generic", "title": title, "kind": "search"}
        assert definition.present_call(cast("Arguments", freeze({"pattern": "x"}))) == card
        located = definition.present_call(cast("Arguments", freeze({"pattern": "x", "path": "p"})))
        assert located == {**card, "locations": [{"path": "p"}]}
