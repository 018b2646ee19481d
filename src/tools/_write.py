"""``write``: give a file its whole contents."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, cast

import attrs
import trio

from ..errors import ToolError
from ..registry import Arguments, Claims, JsonValue, Output, ToolDefinition, define_tool
from ._atomic import ANYTHING, publish, turn_on
from ._diff import call_card, diff_meta, present_diff
from ._files import MAX_TEXT_BYTES, Checkpoint, fs_errors, read_contents, real_path, write_claims
from ._text_edit import encoded
from ._workspace import Workspace, workspace_of

__all__ = ["write_tool"]

_PARAMETERS: Final[dict[str, dict[str, JsonValue]]] = {
    "file_path": {
        "type": "string",
        "description": "Path to write, resolved by the filesystem backend.",
        "required": True,
    },
    "content": {"type": "string", "description": "Full UTF-8 text content to write.", "required": True},
}
_VALUE: Final[dict[str, JsonValue]] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "path": {"type": "string", "required": True},
        "operation": {"type": "string", "enum": ["create", "update"], "required": True},
        "before": {"oneOf": [{"type": "string"}, {"type": "null"}], "required": True},
        "after": {"type": "string", "required": True},
    },
}
_DESCRIPTION: Final = (
    "Write a UTF-8 text file: create it, or replace all that it contains. Its folder must exist. To change a part of a "
    "file, use an editing tool."
)
_DONE: Final = {"create": "Created file", "update": "Updated file"}


@attrs.frozen
class _Write:
    workspace: Workspace

    async def execute(self, arguments: Arguments) -> JsonValue:
        path = self.workspace.resolve(cast("str", arguments["file_path"]))
        content = cast("str", arguments["content"])
        # The thread itself looks for a cancel, last right before the file changes, so it is not abandoned.
        before = await trio.to_thread.run_sync(
            partial(_write, path, encoded(content, "content"), trio.from_thread.check_cancelled)
        )
        operation = "create" if before is None else "update"
        return {
            "path": self.workspace.display(path),
            "operation": operation,
            "before": before.text if before else None,
            "after": content,
        }

    def claims(self, arguments: Arguments) -> Claims:
        return write_claims(self.workspace, cast("str", arguments["file_path"]))


@attrs.frozen
class _Before:
    """That there was a file; ``text`` is its text, if that is kept."""

    text: str | None


def _write(path: Path, data: bytes, checkpoint: Checkpoint) -> _Before | None:
    """Write a file; gives what it was before, or ``None`` if there was none."""
    target = real_path(path)
    with fs_errors(path, "write"), turn_on(target, checkpoint):
        # Whether it exists is settled by the system here, not by what it is called: a broken link is no file.
        before = _Before(_text_of(target, len(data), checkpoint)) if target.exists() else None
        publish(target, data, ANYTHING, checkpoint)
    return before


def _text_of(target: Path, size: int, checkpoint: Checkpoint) -> str | None:
    """The old text, for those who show what changed: none where it is large, or no text, or may not be read."""
    if size >= MAX_TEXT_BYTES:
        return None
    try:
        return read_contents(target, checkpoint).data.decode()
    except (OSError, ToolError, UnicodeDecodeError):
        return None


def _render(_arguments: Arguments, value: JsonValue) -> str:
    fields = cast("Mapping[str, str]", value)
    done = _DONE[fields["operation"]]
    return f"<path>{fields['path']}</path>\n<type>file</type>\n<content>\n{done}\n</content>"


def _meta(_arguments: Arguments, value: JsonValue) -> JsonValue:
    fields = cast("Mapping[str, str]", value)
    title = f"{_DONE[fields['operation']]} {fields['path']}"
    before = cast("str | None", fields["before"])
    if before is None and fields["operation"] == "update":
        return {"title": title, "diffs": [], "truncated": True}
    return diff_meta(title, fields["path"], before, fields["after"])


def _present_call(arguments: Arguments) -> JsonValue:
    path, content = cast("str", arguments["file_path"]), cast("str", arguments["content"])
    return call_card(f"Write {path}", path, None, content)


def write_tool(workspace: Workspace | str | os.PathLike[str]) -> ToolDefinition:
    """The ``write`` tool: create a file, or replace all of it, in one step.

    Whoever reads the file meanwhile sees the old or the new contents; a call that is cancelled or fails has changed
    nothing. Whether the file was read before is not looked at.

    Args:
        workspace: The folder that relative paths start in. Paths may lead out of it.

    Source: ``spec/catalogue.md`` 5.10, 6.3.
    """
    write = _Write(workspace_of(workspace))
    return define_tool(
        "write",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        output=Output(_VALUE, render=_render, presentation_meta=_meta),
        execute=write.execute,
        claims=write.claims,
        present_call=_present_call,
        present_result=present_diff,
    )
