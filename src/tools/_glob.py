"""``glob``: list the files whose path matches a pattern."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, cast

import attrs

from ..errors import ToolError
from ..registry import PARALLEL, Arguments, JsonValue, Output, ToolDefinition, define_tool
from ._ripgrep import Ripgrep, SearchPlace, checked_ripgrep, glob_option, run_search, search_place
from ._search_page import cut_note, fitting, present_search
from ._workspace import Workspace, workspace_of

__all__ = ["glob_tool"]

_PAGE: Final = 100
_VERSION_CONTROL: Final = (".git", ".svn", ".hg", ".bzr", ".jj", ".sl")

_PARAMETERS: Final[dict[str, dict[str, JsonValue]]] = {
    "pattern": {
        "type": "string",
        "description": (
            'Glob that file paths must match, such as "**/*.ts" or "src/**/*.test.js". Without a "/" it matches the '
            'name at any depth, so "*" and "*.ts" search the whole tree; with one it is anchored in the searched '
            "folder."
        ),
        "required": True,
    },
    "path": {
        "type": "string",
        "description": "Folder to search. Defaults to the workspace; a relative path starts there.",
    },
}
_VALUE: Final[dict[str, JsonValue]] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "root": {"type": "string", "required": True},
        "paths": {"type": "array", "items": {"type": "string"}, "required": True},
    },
}
_DESCRIPTION: Final = (
    "List the files whose path matches a glob pattern, the longest unchanged first. Hidden and ignored files are "
    "listed too; the folders of version control are not."
)


@attrs.frozen
class _Glob:
    workspace: Workspace
    ripgrep: Ripgrep
    grace: float

    async def execute(self, arguments: Arguments) -> JsonValue:
        pattern = cast("str", arguments["pattern"])
        if not pattern.strip():
            msg = "pattern must not be blank"
            raise ToolError(msg, "SEARCH_INVALID_PATTERN")
        place = await search_place(self.workspace, cast("str", arguments.get("path", "")), files=False)
        printed = await run_search(self.ripgrep, _arguments(pattern, place), place, grace=self.grace)
        paths = [self.workspace.display(place.found(path)) for path in _paths(printed, place.prefix)]
        return {"root": str(place.asked), "paths": cast("JsonValue", paths)}


def _arguments(pattern: str, place: SearchPlace) -> list[str]:
    excluded = [f"--glob=!**/{name}{rest}" for name in _VERSION_CONTROL for rest in ("", "/**")]
    options = ["--no-config", "--files", glob_option(pattern), "--sort=modified", "--no-ignore", "--hidden"]
    return [*options, *excluded, "--", place.target]


def _paths(printed: bytes, prefix: str) -> list[str]:
    """One path a line, but a name may itself hold line breaks: a path starts where the searched folder's does."""
    text = os.fsdecode(printed).removesuffix("\n")
    return text.removeprefix(prefix).split(f"\n{prefix}") if text else []


def _render(_arguments: Arguments, value: JsonValue) -> str:
    paths = cast("list[str]", cast("Mapping[str, JsonValue]", value)["paths"])
    if not paths:
        return "No files found"
    page = "\n".join(paths[:_PAGE])
    return page if len(paths) <= _PAGE else f"{page}\n\n{cut_note(_PAGE, len(paths), 'paths')}"


def _meta(_arguments: Arguments, value: JsonValue) -> JsonValue:
    paths = cast("list[JsonValue]", cast("Mapping[str, JsonValue]", value)["paths"])
    shown = fitting(paths[:_PAGE])
    return {"shape": "paths", "paths": shown, "truncated": len(shown) < len(paths), "total": len(paths)}


def _present_call(arguments: Arguments) -> JsonValue:
    card: dict[str, JsonValue] = {"type": "generic", "title": f"Glob {arguments['pattern']}", "kind": "search"}
    return {**card, "locations": [{"path": arguments["path"]}]} if "path" in arguments else card


def glob_tool(
    workspace: Workspace | str | os.PathLike[str],
    *,
    ripgrep: Ripgrep = None,
    timeout_ms: float = 30_000,
    grace: float = 3.0,
) -> ToolDefinition:
    """The ``glob`` tool: paths that match a pattern, hidden and ignored ones too, in the order of their last change.

    Args:
        workspace: The folder that is searched unless a call names another.
        ripgrep: The program to search with; ``None`` looks for it and falls back to Python, ``False`` is the
            fallback.
        timeout_ms: Declared budget of a call, for ``policies.Deadline``.
        grace: Seconds from SIGTERM to SIGKILL when a search has to be ended.

    Raises:
        RegistrationError: ``ripgrep`` names a file that cannot be run.

    Source: ``spec/catalogue.md`` 5.13.
    """
    return define_tool(
        "glob",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        output=Output(_VALUE, render=_render, presentation_meta=_meta),
        execute=_Glob(workspace_of(workspace), checked_ripgrep(ripgrep), grace).execute,
        claims=PARALLEL,
        timeout_ms=timeout_ms,
        present_call=_present_call,
        present_result=present_search,
    )
