"""The documentation is true: its code runs, prints what it says, its links lead somewhere, its blocks are fresh."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import io
import itertools
import re
import sys
import types
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), ROOT / "README.md"])
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")

page_of = pytest.mark.parametrize("page", PAGES, ids=[path.relative_to(ROOT).as_posix() for path in PAGES])


@attrs.frozen
class Block:
    """A Python block of a page.

    Attributes:
        code: Its text.
        line: The line of the page that its first line is on.
        runs: Whether it is executed, or only compiled.
        prints: What it must print, or ``None`` if the page does not say.
    """

    code: str
    line: int
    runs: bool
    prints: str | None


def blocks_of(text: str) -> list[Block]:
    """The Python blocks of a page in order; a ``text`` block that follows one, with no other between, is its output."""
    fences = list(FENCE.finditer(text))
    found: list[Block] = []
    for fence, following in itertools.zip_longest(fences, fences[1:]):
        info = fence["info"].split()
        if info[:1] != ["python"]:
            continue
        shown = following["body"] if following is not None and following["info"].strip() == "text" else None
        line = text.count("\n", 0, fence.start("body")) + 1
        found.append(Block(fence["body"], line, "no-run" not in info, shown))
    return found


def compiled(block: Block, page: Path) -> types.CodeType:
    """The block's code, with the page's name and lines, so that a traceback leads to the page."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec", flags=flags, dont_inherit=True)
    assert isinstance(code, types.CodeType)
    return code


def execute(code: types.CodeType, names: dict[str, Any]) -> None:
    """Run a block; one that awaits at the top runs under trio, on a clock that jumps."""
    if not code.co_flags & inspect.CO_COROUTINE:
        exec(code, names)  # noqa: S102 - our own page
        return

    async def main() -> None:
        await eval(code, names)  # noqa: S307 - our own page

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


@page_of
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Python blocks of a page run in order as one program, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType(f"docs_{page.stem.replace('-', '_')}")
    # Annotations of the page's functions and classes are looked up in their module.
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks_of(page.read_text(encoding="utf-8")):
        code = compiled(block, page)
        if not block.runs:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            execute(code, module.__dict__)
        if block.prints is not None:
            assert printed.getvalue() == block.prints, f"{page}:{block.line} prints something else"
        else:
            assert not printed.getvalue(), f"{page}:{block.line} prints, and no text block says what"


def test_the_tutorial_has_code() -> None:
    """A mistake in the way blocks are found would make the test above pass for nothing."""
    assert len(blocks_of((DOCS / "tutorial.md").read_text(encoding="utf-8"))) >= 10


def test_a_block_that_prints_something_else_is_found(tmp_path: Path) -> None:
    """What a text block says is tied to the Python block right before it."""
    first, second = blocks_of("```python\nprint(1)\n```\nso\n```text\n2\n```\n\n```python no-run\nawait x\n```\n")
    assert (first.prints, first.line, first.runs, second.runs) == ("2\n", 2, True, False)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        execute(compiled(first, tmp_path), {})
    assert printed.getvalue() == "1\n"


@page_of
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    """Links to files of the project exist, and so do the headings they name."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for match in LINK.finditer(text):
        target, _, anchor = match["target"].partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        path = page if not target else (page.parent / target).resolve()
        assert path.exists(), f"{page.name} links to {target}, which does not exist"
        if anchor:
            assert anchor in anchors_of(path), f"{page.name} links to {match['target']}, which has no such heading"


def anchors_of(path: Path) -> set[str]:
    """The anchors that a page's headings get: lower case, spaces as hyphens, other signs dropped."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_reached_from_the_index() -> None:
    """The index links to every page beside it."""
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    linked = {match["target"].partition("#")[0] for match in LINK.finditer(index)}
    assert {path.name for path in DOCS.glob("*.md")} - {"index.md"} <= linked


def test_every_path_in_the_design_page_exists() -> None:
    """A file that the page names is there: nothing it says is about a module that was renamed."""
    text = (DOCS / "design.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:src|tests|docs)/[\w./-]*)`", text))
    named |= {f"src/{path}" for path in re.findall(r"`((?:registry|actors|schedule|journal)/\w+\.py)`", text)}
    assert {path for path in named if not (ROOT / path).exists()} == set()


def test_every_module_has_its_line_in_the_map() -> None:
    """The map of the design page names each module, and a module says in its first line what it is for."""
    text = (DOCS / "design.md").read_text(encoding="utf-8")
    lines = dict(re.findall(r"^\| `(src/[\w./]+\.py)` \| (.*) \|$", text, re.MULTILINE))
    assert set(lines) == {path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert [path for path, line in lines.items() if not line] == []


def test_the_generated_blocks_are_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """State diagram, map and reference are what ``python docs/_generate.py`` would write now."""
    monkeypatch.setattr(sys, "path", [str(DOCS), *sys.path])
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "_generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    stale = [path.name for path, text in generate.fresh_pages().items() if path.read_text(encoding="utf-8") != text]
    assert not stale, "run python docs/_generate.py"
