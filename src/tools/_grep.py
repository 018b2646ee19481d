"""``grep``: find the lines that match a regular expression."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any, Final, cast

import attrs
import trio

from ..errors import ToolError
from ..registry import PARALLEL, Arguments, JsonValue, Output, ToolDefinition, define_tool
from ._ripgrep import Ripgrep, SearchPlace, checked_ripgrep, glob_option, run_search, search_place
from ._search_page import cut_line, cut_note, fitting, present_search
from ._workspace import Workspace, workspace_of

__all__ = ["grep_tool"]

_PAGE: Final = 250
_NOT_UTF8: Final = "(line is not valid UTF-8)"
_BRACES: Final = re.compile(r"\{[^{}]*\}")

_PARAMETERS: Final[dict[str, dict[str, JsonValue]]] = {
    "pattern": {"type": "string", "description": "Regular expression in ripgrep's syntax.", "required": True},
    "path": {
        "type": "string",
        "description": "File or folder to search. Defaults to the workspace; a relative path starts there.",
    },
    "include": {
        "type": "string",
        "description": 'One glob for the files to search, such as "*.ts" or "*.{js,jsx}". No list, no negation.',
    },
}
_VALUE: Final[dict[str, JsonValue]] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "matches": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "path": {"type": "string", "required": True},
                    "lineNumber": {"type": "integer", "required": True},
                    "line": {"type": "string", "required": True},
                },
            },
            "required": True,
        },
    },
}
_DESCRIPTION: Final = (
    "Search the contents of files for a regular expression and list the matching lines by file. Hidden, ignored and "
    "binary files are left out."
)


@attrs.frozen
class _Grep:
    workspace: Workspace
    ripgrep: Ripgrep
    grace: float

    async def execute(self, arguments: Arguments) -> JsonValue:
        pattern, include = cast("str", arguments["pattern"]), cast("str | None", arguments.get("include"))
        if not pattern:
            msg = "pattern must not be empty"
            raise ToolError(msg, "SEARCH_INVALID_PATTERN")
        if include is not None:
            _check_include(include)
        place = await search_place(self.workspace, cast("str", arguments.get("path", "")), files=True)
        globs = [] if include is None else [glob_option(include)]
        # Always with a target: without one, ripgrep reports having had no file to search as an error.
        options = ["--no-config", "--json", f"--regexp={pattern}", *globs, "--", place.target]
        printed = await run_search(self.ripgrep, options, place, grace=self.grace)
        # Up to 20 MB of JSON would hold up every other task.
        return {"matches": await trio.to_thread.run_sync(self._matches, printed, place)}

    def _matches(self, printed: bytes, place: SearchPlace) -> list[JsonValue]:
        # ripgrep searches files side by side and prints them as they come: without an order of our own, equal calls
        # would show different pages.
        found = sorted(_found(printed), key=lambda match: match[:2])
        return [
            {"path": self.workspace.display(place.found(path)), "lineNumber": number, "line": line}
            for path, number, line in found
        ]


def _check_include(include: str) -> None:
    outside = include
    while (shorter := _BRACES.sub("", outside)) != outside:
        outside = shorter
    if not include.strip() or include.startswith("!") or "," in outside:
        msg = f"include must be one positive glob, such as *.py or *.{{js,jsx}}, got {include!r}"
        raise ToolError(msg, "SEARCH_INVALID_PATTERN")


def _found(printed: bytes) -> list[tuple[str, int, str]]:
    """Path, line number and line of every match in ripgrep's JSON lines.

    Raises:
        ToolError: ``SEARCH_FAILED``: a line is not what ripgrep prints.
    """
    try:
        events: list[dict[str, Any]] = [json.loads(line) for line in printed.splitlines()]
        matches = [event["data"] for event in events if event["type"] == "match"]
        return [(_path(match["path"]), int(match["line_number"]), _line(match["lines"])) for match in matches]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        msg = f"the search printed something that is not ripgrep's JSON: {error!r}"
        raise ToolError(msg, "SEARCH_FAILED") from error


def _path(data: dict[str, str]) -> str:
    return data["text"] if "text" in data else os.fsdecode(base64.b64decode(data["bytes"]))


def _line(data: dict[str, str]) -> str:
    return data["text"].removesuffix("\n").removesuffix("\r") if "text" in data else _NOT_UTF8


def _render(_arguments: Arguments, value: JsonValue) -> str:
    matches = _matches_of(value)
    if not matches:
        return "No matches found"
    page, total = matches[:_PAGE], len(matches)
    cut = len(page) < total
    noun = "match" if total == 1 else "matches"
    parts = [f"Found {len(page)} of {total} matches" if cut else f"Found {total} {noun}"]
    for path, group in groupby(page, key=lambda match: match["path"]):
        lines = [f"Line {match['lineNumber']}: {cut_line(cast('str', match['line']))}" for match in group]
        parts.append("\n".join([cast("str", path), *lines]))
    if cut:
        parts.append(cut_note(len(page), total, "matches"))
    return "\n\n".join(parts)


def _meta(_arguments: Arguments, value: JsonValue) -> JsonValue:
    matches = _matches_of(value)
    shown = fitting({**match, "line": cut_line(cast("str", match["line"]))} for match in matches[:_PAGE])
    return {"shape": "matches", "matches": shown, "truncated": len(shown) < len(matches), "total": len(matches)}


def _matches_of(value: JsonValue) -> list[Mapping[str, JsonValue]]:
    return cast("list[Mapping[str, JsonValue]]", cast("Mapping[str, JsonValue]", value)["matches"])


def _present_call(arguments: Arguments) -> JsonValue:
    card: dict[str, JsonValue] = {"type": "generic", "title": f"Grep {arguments['pattern']}", "kind": "search"}
    return {**card, "locations": [{"path": arguments["path"]}]} if "path" in arguments else card


def grep_tool(
    workspace: Workspace | str | os.PathLike[str],
    *,
    ripgrep: Ripgrep = None,
    timeout_ms: float = 30_000,
    grace: float = 3.0,
) -> ToolDefinition:
    """The ``grep`` tool: lines that match a regular expression, by path and line number.

    Args:
        workspace: The folder that is searched unless a call names another.
        ripgrep: The program to search with; ``None`` looks for it and falls back to Python, ``False`` is the
            fallback.
        timeout_ms: Declared budget of a call, for ``policies.Deadline``.
        grace: Seconds from SIGTERM to SIGKILL when a search has to be ended.

    Raises:
        RegistrationError: ``ripgrep`` names a file that cannot be run.

    Source: ``spec/catalogue.md`` 5.14.
    """
    return define_tool(
        "grep",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        output=Output(_VALUE, render=_render, presentation_meta=_meta),
        execute=_Grep(workspace_of(workspace), checked_ripgrep(ripgrep), grace).execute,
        claims=PARALLEL,
        timeout_ms=timeout_ms,
        present_call=_present_call,
        present_result=present_search,
    )
