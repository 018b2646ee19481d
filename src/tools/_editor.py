"""``str_replace_editor``: view, create and edit files by one tool with commands."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, cast

import attrs
import trio

from ..errors import ToolArgsError, ToolError
from ..registry import PARALLEL, Arguments, Claims, JsonValue, Output, ToolDefinition, define_tool
from ._atomic import NOTHING, publish, turn_on
from ._diff import call_card
from ._editor_view import ViewRange, view
from ._files import Checkpoint, fs_errors, real_path, write_claims
from ._text_edit import Replacement, change_text, encoded, inserted, normalised
from ._workspace import Workspace, workspace_of

__all__ = ["str_replace_editor_tool"]


def _or_null(node: JsonValue, description: str) -> dict[str, JsonValue]:
    return {"oneOf": [node, {"type": "null"}], "description": description}


_PARAMETERS: Final[dict[str, dict[str, JsonValue]]] = {
    "command": {
        "type": "string",
        "description": "The commands to run. Allowed options are: `view`, `create`, `str_replace`, `insert`.",
        "enum": ["view", "create", "str_replace", "insert"],
        "required": True,
    },
    "path": {
        "type": "string",
        "description": "Absolute path to file or directory, e.g. `/repo/file.py` or `/repo`.",
        "required": True,
    },
    "file_text": _or_null(
        {"type": "string"},
        "Required string parameter of `create` command, with the content of the file to be created. A null placeholder "
        "is treated as omitted by commands that do not use this parameter.",
    ),
    "insert_line": _or_null(
        {"type": "integer"},
        "Required integer parameter of `insert` command. The `new_str` will be inserted AFTER the line `insert_line` "
        "of `path`. A null placeholder is treated as omitted by commands that do not use this parameter.",
    ),
    "new_str": _or_null(
        {"type": "string"},
        "Optional string parameter of `str_replace` command containing the new string (if omitted, no string will be "
        "added). Required string parameter of `insert` command containing the string to insert. A null placeholder is "
        "accepted only by commands that do not use this parameter.",
    ),
    "old_str": _or_null(
        {"type": "string"},
        "Required string parameter of `str_replace` command containing the string in `path` to replace. A null "
        "placeholder is treated as omitted by commands that do not use this parameter.",
    ),
    "view_range": _or_null(
        {"type": "array", "items": {"type": "integer"}},
        "Optional parameter of `view` command when `path` points to a file. If omitted or null, the full file is "
        "shown. If provided, the file will be shown in the indicated line number range, e.g. [11, 12] will show lines "
        "11 and 12. Indexing at 1 to start. Setting `[start_line, -1]` shows all lines from `start_line` to the end of "
        "the file.",
    ),
}
_DESCRIPTION: Final = (
    "View, create and edit UTF-8 text files. `view` shows a file with numbered lines, or two levels of a folder; "
    "`create` makes a new file; `str_replace` replaces the only match of a text; `insert` puts lines after a line."
)


@attrs.frozen
class _View:
    """A ``view`` command with checked arguments; the others are alike."""

    path: Path
    lines: ViewRange | None

    def run(self, checkpoint: Checkpoint) -> str:
        return view(self.path, self.lines, checkpoint)


@attrs.frozen
class _Create:
    path: Path
    data: bytes

    def run(self, checkpoint: Checkpoint) -> str:
        target = real_path(self.path)
        if os.path.lexists(self.path):
            msg = f"{self.path} already exists, and create only makes new files; view it, then edit it"
            raise ToolError(msg)
        with fs_errors(self.path, "write"), turn_on(target, checkpoint):
            publish(target, self.data, NOTHING, checkpoint)
        return f"Created {self.path}"


@attrs.frozen
class _StrReplace:
    path: Path
    old: str
    new: str

    def run(self, checkpoint: Checkpoint) -> str:
        replacement = Replacement(str(self.path), self.old, self.new, "old_str")
        change_text(self.path, replacement, checkpoint)
        return f"Replaced 1 match in {self.path}"


@attrs.frozen
class _Insert:
    path: Path
    after: int
    new: str

    def run(self, checkpoint: Checkpoint) -> str:
        change_text(self.path, partial(inserted, after=self.after, new=self.new), checkpoint)
        return f"Inserted text after line {self.after} of {self.path}"


_Command: TypeAlias = _View | _Create | _StrReplace | _Insert


@attrs.frozen
class _Editor:
    workspace: Workspace

    async def execute(self, arguments: Arguments) -> str:
        command = self._command(arguments)
        # The thread itself looks for a cancel, last right before a file changes, so it is not abandoned.
        return await trio.to_thread.run_sync(command.run, trio.from_thread.check_cancelled)

    def claims(self, arguments: Arguments) -> Claims:
        if arguments["command"] == "view":
            return PARALLEL
        return write_claims(self.workspace, cast("str", arguments["path"]))

    def _command(self, arguments: Arguments) -> _Command:
        given = cast("str", arguments["path"])
        path = Path(given)
        if not path.is_absolute():
            meant = self.workspace.resolve(given)
            raise ToolArgsError.of([f'"path" must be an absolute path, such as {str(meant)!r}, got {given!r}'])
        match arguments["command"]:
            case "view":
                return _View(path, _view_range(arguments.get("view_range")))
            case "create":
                return _Create(path, encoded(_needed(arguments, "file_text"), "file_text"))
            case "str_replace":
                new = _needed(arguments, "new_str") if "new_str" in arguments else ""
                return _StrReplace(path, *_different(_needed(arguments, "old_str"), new))
            case _:
                after = arguments.get("insert_line")
                if not isinstance(after, int) or after < 0:
                    raise ToolArgsError.of(['"insert_line" must be a whole number of at least 0 for "insert"'])
                new = _needed(arguments, "new_str")
                encoded(new, "new_str")
                return _Insert(path, int(after), new)


def _needed(arguments: Arguments, name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise ToolArgsError.of([f'"{name}" must be a string for "{arguments["command"]}"'])
    return value


def _different(old: str, new: str) -> tuple[str, str]:
    if not old:
        raise ToolArgsError.of(['"old_str" must not be empty'])
    if normalised(old) == normalised(new):
        raise ToolArgsError.of(['"new_str" must differ from "old_str" in more than line breaks'])
    encoded(new, "new_str")
    return old, new


def _view_range(given: JsonValue) -> ViewRange | None:
    if given is None:
        return None
    match list(cast("list[int]", given)):
        case [first, -1] if first >= 1:
            return ViewRange(int(first), None)
        case [first, last] if 1 <= first <= last:
            return ViewRange(int(first), int(last))
        case _:
            wanted = "two line numbers [a, b] with 1 <= a <= b, or [a, -1] for the rest of the file"
            raise ToolArgsError.of([f'"view_range" must be {wanted}'])


def _present_call(arguments: Arguments) -> JsonValue:
    path, command = cast("str", arguments["path"]), arguments["command"]
    if command == "create":
        return call_card(f"Create {path}", path, None, cast("str", arguments["file_text"]))
    if command == "str_replace":
        old, new = cast("str", arguments["old_str"]), cast("str", arguments.get("new_str", ""))
        return call_card(f"Edit {path}", path, old, new)
    card: dict[str, JsonValue] = {"type": "generic", "title": f"View {path}", "kind": "read"}
    if command == "insert":
        place: JsonValue = {"path": path, "line": cast("int", arguments["insert_line"]) + 1}
        return {**card, "title": f"Insert into {path}", "kind": "edit", "locations": [place]}
    return {**card, "locations": [{"path": path}]}


def str_replace_editor_tool(workspace: Workspace | str | os.PathLike[str]) -> ToolDefinition:
    """The ``str_replace_editor`` tool: ``view``, ``create``, ``str_replace`` and ``insert`` on absolute paths.

    ``view`` overlaps with everything that only reads; the others touch one file each, and change it as ``write`` and
    ``edit`` do.

    Args:
        workspace: What the remedy for a relative path starts from. Paths may lead out of it.

    Source: ``spec/catalogue.md`` 5.8, 6.3.
    """
    editor = _Editor(workspace_of(workspace))
    return define_tool(
        "str_replace_editor",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        output=Output({"type": "string"}),
        execute=editor.execute,
        claims=editor.claims,
        present_call=_present_call,
    )
