"""The tools that come with quiesce, as factories: ``registry.register(bash_tool("."))``.

They are never registered by themselves. What each does, and its limits and codes, is in ``docs/builtin-tools.md``.
"""

from ._bash import bash_tool, command_environment
from ._builtin import builtin_tools
from ._edit import edit_tool
from ._editor import str_replace_editor_tool
from ._glob import glob_tool
from ._grep import grep_tool
from ._read import read_tool
from ._ripgrep import Ripgrep, find_ripgrep
from ._workspace import Workspace
from ._write import write_tool

__all__ = [
    "Ripgrep",
    "Workspace",
    "bash_tool",
    "builtin_tools",
    "command_environment",
    "edit_tool",
    "find_ripgrep",
    "glob_tool",
    "grep_tool",
    "read_tool",
    "str_replace_editor_tool",
    "write_tool",
]
