"""The folder that tools work in."""

from __future__ import annotations

import os
from pathlib import Path

import attrs

__all__ = ["Workspace", "workspace_of"]


def _absolute(root: str | os.PathLike[str]) -> Path:
    return Path(root).absolute()


@attrs.frozen
class Workspace:
    """Where relative paths start, and how paths are shown.

    It is no fence: an absolute path, or one with ``..``, may lead anywhere.

    Attributes:
        root: The folder; made absolute when the workspace is made, links in it are kept.
    """

    root: Path = attrs.field(converter=_absolute)

    def resolve(self, path: str | os.PathLike[str]) -> Path:
        """The absolute path that ``path`` means; it need not exist, and links and ``..`` stay in it."""
        return self.root / path

    def display(self, path: str | os.PathLike[str]) -> str:
        """How ``path`` is shown, in a form that ``resolve`` takes: relative inside the workspace, else absolute.

        Bytes in a name that are not UTF-8 come out as lone surrogates, as everywhere in Python.
        """
        absolute = self.resolve(path)
        inside = absolute.is_relative_to(self.root)
        return str(absolute.relative_to(self.root) if inside else absolute)


def workspace_of(workspace: Workspace | str | os.PathLike[str]) -> Workspace:
    """The workspace that a tool factory was given, as a folder or ready-made."""
    return workspace if isinstance(workspace, Workspace) else Workspace(workspace)
