"""All the tools at once."""

from __future__ import annotations

import os

from ..registry import ToolDefinition
from ._bash import bash_tool
from ._edit import edit_tool
from ._editor import str_replace_editor_tool
from ._glob import glob_tool
from ._grep import grep_tool
from ._read import read_tool
from ._ripgrep import Ripgrep
from ._workspace import Workspace, workspace_of
from ._write import write_tool

__all__ = ["builtin_tools"]


def builtin_tools(
    workspace: Workspace | str | os.PathLike[str], *, ripgrep: Ripgrep = None, grace: float = 3.0
) -> tuple[ToolDefinition, ...]:
    """All the tools for one workspace.

    In this order: ``bash``, ``read``, ``write``, ``edit``, ``str_replace_editor``, ``glob`` and ``grep``.

    Args:
        workspace: The folder they work in.
        ripgrep: What ``glob`` and ``grep`` search with; see ``glob_tool``.
        grace: Seconds from SIGTERM to SIGKILL when a process has to be ended.

    Raises:
        RegistrationError: ``ripgrep`` names a file that cannot be run.
    """
    place = workspace_of(workspace)
    return (
        bash_tool(place, grace=grace),
        read_tool(place),
        write_tool(place),
        edit_tool(place),
        str_replace_editor_tool(place),
        glob_tool(place, ripgrep=ripgrep, grace=grace),
        grep_tool(place, ripgrep=ripgrep, grace=grace),
    )
