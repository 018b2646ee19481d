"""``edit``: replace text in a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Final, cast

import attrs
import trio

from ..errors import ToolArgsError
from ..registry import Arguments, Claims, JsonValue, Output, ToolDefinition, define_tool
from ._diff import call_card, diff_meta, present_diff
from ._files import write_claims
from ._text_edit import Replacement, change_text, encoded, normalised
from ._workspace import Workspace, workspace_of

__all__ = ["edit_tool"]

_PARAMETERS: Final[dict[str, dict[str, JsonValue]]] = {
    "file_path": {
        "type": "string",
        "description": "Path to edit, resolved by the filesystem backend.",
        "required": True,
    },
    "old_string": {
        "type": "string",
        "description": "Literal text to replace. Must match exactly.",
        "required": True,
    },
    "new_string": {
        "type": "string",
        "description": "Literal replacement text. Use an empty string to delete the match.",
        "required": True,
    },
    "replace_all": {
        "type": "boolean",
        "description": ("Replace all matches. Defaults to false; when false, old_string must appear exactly once."),
    },
}
_VALUE: Final[dict[str, JsonValue]] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "path": {"type": "string", "required": True},
        "before": {"type": "string", "required": True},
        "after": {"type": "string", "required": True},
    },
}
_DESCRIPTION: Final = (
    "Replace text in a UTF-8 file, literally. The text to replace must occur exactly once, unless all matches are to "
    "be replaced."
)


@attrs.frozen
class _Edit:
    workspace: Workspace

    async def execute(self, arguments: Arguments) -> JsonValue:
        old, new = cast("str", arguments["old_string"]), cast("str", arguments["new_string"])
        _check(old, new)
        path = self.workspace.resolve(cast("str", arguments["file_path"]))
        replacement = Replacement(
            str(path),
            old,
            new,
            "old_string",
            everywhere=bool(arguments.get("replace_all", False)),
            remedy=", or set replace_all",
        )
        # The thread itself looks for a cancel, last right before the file changes, so it is not abandoned.
        changed = await trio.to_thread.run_sync(
            partial(change_text, path, replacement, trio.from_thread.check_cancelled)
        )
        return {"path": self.workspace.display(path), "before": changed.before, "after": changed.after}

    def claims(self, arguments: Arguments) -> Claims:
        return write_claims(self.workspace, cast("str", arguments["file_path"]))


def _check(old: str, new: str) -> None:
    if not old:
        raise ToolArgsError.of(['"old_string" must not be empty'])
    if normalised(old) == normalised(new):
        raise ToolArgsError.of(['"new_string" must differ from "old_string" in more than line breaks'])
    encoded(new, "new_string")


def _render(arguments: Arguments, value: JsonValue) -> str:
    fields = cast("Mapping[str, str]", value)
    count = normalised(fields["before"]).count(normalised(cast("str", arguments["old_string"])))
    return f"Replaced {count} {'match' if count == 1 else 'matches'} in {fields['path']}"


def _meta(_arguments: Arguments, value: JsonValue) -> JsonValue:
    fields = cast("Mapping[str, str]", value)
    return diff_meta(f"Edited {fields['path']}", fields["path"], fields["before"], fields["after"])


def _present_call(arguments: Arguments) -> JsonValue:
    path, old, new = (cast("str", arguments[name]) for name in ("file_path", "old_string", "new_string"))
    return call_card(f"Edit {path}", path, old, new)


def edit_tool(workspace: Workspace | str | os.PathLike[str]) -> ToolDefinition:
    """The ``edit`` tool: replace the only match of a literal text in a file, or all of them, in one step.

    Two edits of one file run in order, edits of different files overlap. A call that is cancelled or fails has changed
    nothing; so has one whose file somebody else changed meanwhile. Whether the file was read before is not looked at.

    Args:
        workspace: The folder that relative paths start in. Paths may lead out of it.

    Source: ``spec/catalogue.md`` 5.11, 6.3.
    """
    edit = _Edit(workspace_of(workspace))
    return define_tool(
        "edit",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        output=Output(_VALUE, render=_render, presentation_meta=_meta),
        execute=edit.execute,
        claims=edit.claims,
        present_call=_present_call,
        present_result=present_diff,
    )
