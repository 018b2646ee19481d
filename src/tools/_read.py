"""``read``: show a window of lines of a text file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import PurePath
from typing import Final, cast

import attrs
import trio

from ..errors import ToolArgsError
from ..registry import PARALLEL, Arguments, JsonValue, Outcome, Output, ToolDefinition, define_tool
from ._cards import card_of
from ._text_window import MAX_LINES, read_window
from ._workspace import Workspace, workspace_of

__all__ = ["read_tool"]

_LANGUAGES: Final = {
    ".c": "c",
    ".cpp": "cpp",
    ".cs": "csharp",
    ".css": "css",
    ".go": "go",
    ".h": "c",
    ".hpp": "cpp",
    ".html": "html",
    ".java": "java",
    ".js": "javascript",
    ".json": "json",
    ".jsx": "jsx",
    ".kt": "kotlin",
    ".lua": "lua",
    ".md": "markdown",
    ".php": "php",
    ".py": "python",
    ".pyi": "python",
    ".rb": "ruby",
    ".rs": "rust",
    ".sh": "bash",
    ".sql": "sql",
    ".swift": "swift",
    ".toml": "toml",
    ".ts": "typescript",
    ".tsx": "tsx",
    ".xml": "xml",
    ".yaml": "yaml",
    ".yml": "yaml",
}

_PARAMETERS: Final[dict[str, dict[str, JsonValue]]] = {
    "file_path": {
        "type": "string",
        "description": "Path of the file; a relative path starts in the workspace.",
        "required": True,
    },
    "offset": {"type": "number", "description": "First line to return, counted from 1. Defaults to 1."},
    "limit": {
        "type": "number",
        "description": f"Most lines to return. Defaults to {MAX_LINES}, which is also the cap.",
    },
}
_VALUE: Final[dict[str, JsonValue]] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "path": {"type": "string", "required": True},
        "offset": {"type": "integer", "required": True},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "number": {"type": "integer", "required": True},
                    "text": {"type": "string", "required": True},
                },
            },
            "required": True,
        },
        "totalLines": {"type": "integer", "required": True},
    },
}
_DESCRIPTION: Final = (
    "Read a UTF-8 text file as numbered lines. A long file is read in windows: the last line of the result says which "
    "offset comes next."
)


@attrs.frozen
class _Read:
    workspace: Workspace

    async def execute(self, arguments: Arguments) -> JsonValue:
        offset = _count(arguments, "offset", default=1, largest=None)
        limit = _count(arguments, "limit", default=MAX_LINES, largest=MAX_LINES)
        path = self.workspace.resolve(cast("str", arguments["file_path"]))
        # The thread itself looks for a cancel between chunks, so it is not abandoned and does not outlive the call.
        window = await trio.to_thread.run_sync(
            partial(read_window, path, offset, limit, trio.from_thread.check_cancelled)
        )
        return {
            "path": self.workspace.display(path),
            "offset": offset,
            "lines": [{"number": line.number, "text": line.text} for line in window.lines],
            "totalLines": window.total,
        }


def _count(arguments: Arguments, name: str, *, default: int, largest: int | None) -> int:
    given = arguments.get(name, default)
    if not isinstance(given, int | float) or given != int(given) or given < 1:
        raise ToolArgsError.of([f'"{name}" must be a whole number of at least 1'])
    if largest is not None and given > largest:
        raise ToolArgsError.of([f'"{name}" must be at most {largest}'])
    return int(given)


def _render(arguments: Arguments, value: JsonValue) -> str:
    fields = cast("Mapping[str, JsonValue]", value)
    lines = cast("list[Mapping[str, JsonValue]]", fields["lines"])
    numbered = "".join(f"{line['number']}: {line['text']}\n" for line in lines)
    limit = _count(arguments, "limit", default=MAX_LINES, largest=MAX_LINES)
    footer = _footer(lines, cast("int", fields["totalLines"]), limit)
    return f"<path>{fields['path']}</path>\n<type>file</type>\n<content>\n{numbered}\n({footer})\n</content>"


def _footer(lines: list[Mapping[str, JsonValue]], total: int, limit: int) -> str:
    first, last = (cast("int", lines[0]["number"]), cast("int", lines[-1]["number"])) if lines else (0, 0)
    if last >= total:
        return f"End of file - total {total} lines"
    onward = f"lines {first}-{last} of {total}. Use offset={last + 1} to continue."
    # Fewer lines than asked for, and more in the file: only the limit in bytes can have stopped it.
    return f"Output capped at 50 KiB. Showing {onward}" if len(lines) < limit else f"Showing {onward}"


def _meta(_arguments: Arguments, value: JsonValue) -> JsonValue:
    fields = cast("Mapping[str, JsonValue]", value)
    language = _LANGUAGES.get(PurePath(cast("str", fields["path"])).suffix.lower())
    return {**fields, "lang": language} if language else {**fields}


def _present_call(arguments: Arguments) -> JsonValue:
    path = arguments["file_path"]
    location: JsonValue = {"path": path, "line": _count(arguments, "offset", default=1, largest=None)}
    return {"type": "generic", "title": f"Read {path}", "kind": "read", "locations": [location]}


def _present_result(_arguments: Arguments, outcome: Outcome) -> JsonValue:
    return card_of(outcome.meta, "read", {"path", "offset", "lines", "totalLines"})


def read_tool(workspace: Workspace | str | os.PathLike[str]) -> ToolDefinition:
    """The ``read`` tool: numbered lines of a UTF-8 text file, in windows of at most 2,000 lines and 50 KiB.

    Args:
        workspace: The folder that relative paths start in. Paths may lead out of it.

    Source: ``spec/catalogue.md`` 5.9.
    """
    return define_tool(
        "read",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        output=Output(_VALUE, render=_render, presentation_meta=_meta),
        execute=_Read(workspace_of(workspace)).execute,
        claims=PARALLEL,
        present_call=_present_call,
        present_result=_present_result,
    )
