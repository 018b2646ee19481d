# ruff: noqa: INP001 - a script beside the pages, not a package
"""Rewrites the generated blocks of the documentation: ``python docs/_generate.py``, with ``--check`` only compares.

A block stands between ``<!-- <name>: begin -->`` and ``<!-- <name>: end -->``. The state diagram comes from the table
of transitions, the module map from the first docstring line of each module, the reference from signatures and first
docstring lines.
"""

from __future__ import annotations

import sys
from pathlib import Path

from _reference import DOCS, SRC, first_line, parse, reference

from quiesce.schedule import TRANSITIONS, CallPhase

FOLDERS = {
    "": "the package itself",
    "registry": "what may be called, and what the model sees",
    "actors": "who does the work",
    "schedule": "when it may run",
    "journal": "what happened",
    "policies": "ready-made hooks",
    "tools": "the tools that come with quiesce",
    "adapters": "other people's message formats",
    "cli": "the command line",
    "testing": "for tests of concurrent code, yours and ours",
}

# -- the state diagram


def state_diagram() -> str:
    """The table of transitions as a mermaid diagram."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {CallPhase.QUEUED.value}: submit"]
    lines += [f"    {before.value} --> {after.value}: {event.value}" for (before, event), after in TRANSITIONS.items()]
    lines += [f"    {CallPhase.COMMITTED.value} --> [*]", "```"]
    return "\n".join(lines)


# -- the module map


def module_map() -> str:
    """Every module with its first docstring line, folder by folder."""
    known = {path.parent.relative_to(SRC).as_posix() for path in SRC.rglob("*.py")}
    folders = [folder or "." for folder in FOLDERS]
    parts: list[str] = []
    for folder in [*folders, *sorted(known - set(folders))]:
        name = "" if folder == "." else folder
        title = f"`src/{name}/`" if name else "`src/`"
        about = FOLDERS.get(name)
        head = [f"### {title}" + (f": {about}" if about else ""), "", "| file | |", "|---|---|"]
        rows = [
            f"| `{path.relative_to(DOCS.parent).as_posix()}` | {_cell(first_line(parse(path)))} |"
            for path in sorted((SRC / name).glob("*.py"))
        ]
        parts.append("\n".join([*head, *rows]))
    return "\n\n".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# -- the pages

BLOCKS = {
    "design.md": {"state diagram": state_diagram, "module map": module_map},
    "reference.md": {"reference": reference},
}


def fresh_pages() -> dict[Path, str]:
    """Each page that has generated blocks, with the text that it should have."""
    pages: dict[Path, str] = {}
    for page, blocks in BLOCKS.items():
        text = (DOCS / page).read_text(encoding="utf-8")
        for name, generate in blocks.items():
            begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
            before, found, rest = text.partition(begin)
            _, closed, after = rest.partition(end)
            if not found or not closed:
                msg = f"docs/{page} has no block {begin.strip()} ... {end}"
                raise SystemExit(msg)
            text = f"{before}{begin}\n{generate()}\n\n{end}{after}"
        pages[DOCS / page] = text
    return pages


def main(arguments: list[str]) -> int:
    """Rewrite the pages, or with ``--check`` name those that are stale; the exit code is 1 if there are any."""
    stale = {path: text for path, text in fresh_pages().items() if path.read_text(encoding="utf-8") != text}
    for path, text in stale.items():
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
        print(f"{'stale' if '--check' in arguments else 'rewritten'}: docs/{path.name}")
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
