"""The fallback reads globs and ignore files as ripgrep does."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from quiesce.tools._search_fallback import PatternError, main, parse_rule, translate

RunMain = Callable[..., "Ran"]


@attrs.frozen
class Ran:
    """What a search program printed, and its exit code."""

    code: int
    printed: list[bytes]
    said: str


@attrs.frozen
class Stream:
    """A text stream's binary buffer, which is all that the fallback writes to for paths and complaints."""

    buffer: io.BytesIO = attrs.field(factory=io.BytesIO)


def run_main(*arguments: str) -> Ran:
    """Run the fallback in this process."""
    stdout, stderr = Stream(), Stream()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        patch.setattr(sys, "stderr", stderr)
        code = main(list(arguments))
    return Ran(code, stdout.buffer.getvalue().splitlines(), stderr.buffer.getvalue().decode())


def make(root: Path, *names: str) -> None:
    """Make files with one line each, in the order of the names."""
    for age, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
        os.utime(path, (1_600_000_000 + age, 1_600_000_000 + age))


def listed(root: Path, *options: str) -> list[str]:
    """What the fallback lists below ``root``, relative to it."""
    ran = run_main("--files", *options, "--", str(root))
    assert ran.code in {0, 1}, ran.said
    return sorted(os.path.relpath(os.fsdecode(path), root) for path in ran.printed)


GLOB_PARTS = ["*", "**", "?", "/", "a", "b", ".c", "[", "]", "!", "^", "-", "{", "}", ",", "\\", "**/", "/**", "x"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(GLOB_PARTS), min_size=1, max_size=6).map("".join))
@example("[]a]*")
@example("{a,{b,.c}}*")
@example(".c[a/]*")
def test_any_glob_means_what_it_means_to_ripgrep(
    ripgrep_path: Path, tmp_path_factory: pytest.TempPathFactory, glob: str
) -> None:
    """Both programs list the same files in the same order, or both refuse the glob."""
    root = tmp_path_factory.getbasetemp() / "globs"
    if not root.exists():
        folders = ["", "a/", "b/", ".c/", "a/b/", "b/a/x/"]
        make(root, *(folder + name for folder in folders for name in ("ax", "bx", ".cx", "a-b", "x", "}")))
    # Left out, as nobody asks for it: a lone "!", an escaped slash at the end, an empty alternative.
    assume(glob != "!" and not glob.endswith("\\/") and not re.search(r"[{,][,}]", glob))
    options = ["--no-config", "--files", f"--glob={glob}", "--sort=modified", "--no-ignore", "--hidden"]
    arguments = [*options, "--", str(root)]
    theirs = subprocess.run([ripgrep_path, *arguments], cwd=root, capture_output=True, check=False)
    ours = run_main(*arguments)
    assert (ours.code, ours.printed) == (theirs.returncode, theirs.stdout.splitlines())


@pytest.mark.parametrize("glob", ["[", "[a", "[!", "{a", "a}", "a\\", "[z-a]"])
def test_a_glob_that_is_not_valid_is_refused(glob: str) -> None:
    """The message is one that the tools know for a refused pattern."""
    with pytest.raises(PatternError, match="error parsing glob"):
        translate(glob)


@pytest.mark.parametrize("line", ["", "   ", "# comment"])
def test_a_line_without_a_pattern_is_no_rule(line: str) -> None:
    """Blank lines and comments say nothing."""
    assert parse_rule(line) is None


def test_trailing_blanks_of_a_rule_go_unless_escaped() -> None:
    """As in gitignore."""
    plain, escaped = parse_rule("a  "), parse_rule("a\\ ")
    assert plain is not None
    assert escaped is not None
    assert plain.matches("a", is_folder=False)
    assert escaped.matches("a ", is_folder=False)


def test_the_nearest_rule_of_a_kind_wins(tmp_path: Path) -> None:
    """A deeper .gitignore beats a higher one, and the last matching line of a file the earlier ones."""
    make(tmp_path, "a.log", "keep.log", "sub/a.log", "sub/b.log", "sub/deep/b.log")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\n[broken\n")
    (tmp_path / "sub/.gitignore").write_text("!a.log\r\n")
    assert listed(tmp_path) == ["keep.log", "sub/a.log"]


def test_dot_ignore_ranks_before_gitignore(tmp_path: Path) -> None:
    """Any .ignore beats every .gitignore, and .rgignore beats both."""
    make(tmp_path, "a", "b", "c", "sub/a")
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub/.gitignore").write_text("!a\n")
    (tmp_path / ".ignore").write_text("a\nb\n")
    (tmp_path / ".rgignore").write_text("!b\nc\n")
    assert listed(tmp_path) == ["b"]


def test_gitignore_counts_in_a_repository_only(tmp_path: Path) -> None:
    """Without .git it is a file like any other; at the root of a repository the rules from above end."""
    make(tmp_path, "outer/a", "outer/b", "outer/repo/a", "outer/repo/b", "outer/repo/c", "outer/repo/.git/info/exclude")
    (tmp_path / "outer/.gitignore").write_text("a\n")
    (tmp_path / "outer/repo/.gitignore").write_text("b\n")
    (tmp_path / "outer/repo/.git/info/exclude").write_text("c\n")
    assert listed(tmp_path / "outer") == ["a", "b", "repo/a"]


def test_ignore_files_above_the_searched_folder_count(tmp_path: Path) -> None:
    """A search in a part of a repository follows the rules of the whole."""
    make(tmp_path, "repo/part/a", "repo/part/b", "repo/part/build/c")
    (tmp_path / "repo/.git").mkdir()
    (tmp_path / "repo/.gitignore").write_text("/part/a\nbuild/\n")
    assert listed(tmp_path / "repo/part") == ["b"]


def test_an_expressly_kept_hidden_file_is_listed(tmp_path: Path) -> None:
    """Hidden files are left out unless a rule keeps them or a glob asks for them."""
    make(tmp_path, ".a", ".b", "c")
    (tmp_path / ".ignore").write_text("!.a\n")
    assert listed(tmp_path) == [".a", "c"]
    assert listed(tmp_path, "--glob=.b") == [".b"]


@pytest.mark.parametrize("mode", ["--files", "--regexp=x"])
def test_what_cannot_be_read_is_an_error_after_all_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Simulated, since root may read anything: the rest is searched, and the exit code is 2."""
    make(tmp_path, "a/x", "b/x")
    scan = os.scandir

    def refusing(path: str) -> object:
        if path.endswith("/a"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    printed: list[str] = []
    monkeypatch.setattr("builtins.print", printed.append)
    ran = run_main(mode, "--", str(tmp_path))
    assert ran.code == 2
    assert ran.said == f"rg (Python fallback): {tmp_path}/a: Permission denied\n"
    assert len(ran.printed) == (1 if mode == "--files" else 0)
    assert run_main("--regexp=x", "--", str(tmp_path / "missing")).code == 2


def test_a_binary_file_is_searched_up_to_its_first_nul(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A NUL at the start hides the file; one far into it ends the search there."""
    (tmp_path / "early").write_bytes(b"x\n\0\nx\n")
    (tmp_path / "late").write_bytes(b"x\n" + b"y\n" * 40_000 + b"\0\nx\n")
    events: list[str] = []
    monkeypatch.setattr("builtins.print", events.append)
    assert run_main("--regexp=x", "--", str(tmp_path)).code == 0
    assert len(events) == 1
    assert "late" in events[0]


@pytest.mark.parametrize("pattern", ["(", "a\\nb", "a\nb", "(?P<x"])
def test_an_expression_that_is_not_valid_is_refused(tmp_path: Path, pattern: str) -> None:
    """The exit code says that something is wrong, and the message that it is the pattern."""
    ran = run_main(f"--regexp={pattern}", "--", str(tmp_path))
    assert ran.code == 2
    assert "regex" in ran.said


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("x\rx\n".encode("utf-16"), {"text": "x\rx\n"}),
        (b"\xef\xbb\xbfx", {"text": "x"}),
        (b"x\xff", {"bytes": "eP8="}),
    ],
)
def test_lines_are_printed_as_ripgrep_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, lines: dict[str, str]
) -> None:
    """Text without its byte order mark, or base64 if it is not UTF-8; what is no file is passed over."""
    (tmp_path / "a").write_bytes(content)
    os.mkfifo(tmp_path / "b")
    printed: list[str] = []
    monkeypatch.setattr("builtins.print", printed.append)
    assert run_main("--regexp=^x", "--", str(tmp_path)).code == 0
    data = {"path": {"text": f"{tmp_path}/a"}, "lines": lines, "line_number": 1}
    assert [json.loads(event) for event in printed] == [{"type": "match", "data": data}]
