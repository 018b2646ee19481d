"""Find ripgrep, or the fallback that stands in for it, and run a search with it."""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs
import trio

from ..errors import RegistrationError, ToolError
from ._bash import command_environment
from ._process import Command, Completed, run_command
from ._workspace import Workspace

__all__ = ["Ripgrep", "SearchPlace", "checked_ripgrep", "find_ripgrep", "glob_option", "run_search", "search_place"]

Ripgrep: TypeAlias = str | os.PathLike[str] | Literal[False] | None
"""Which ripgrep to run: its path, ``None`` to look for it, ``False`` to use the Python fallback without looking."""

_STDOUT_BYTES: Final = 20_000_000
_STDERR_BYTES: Final = 64 * 1024
_FALLBACK: Final = Path(__file__).with_name("_search_fallback.py")
_REFUSED_PATTERN: Final = re.compile(
    r"regex parse error|error parsing glob|is not allowed in a regex|regex exceeds size limit"
)


def checked_ripgrep(ripgrep: Ripgrep) -> Ripgrep:
    """``ripgrep`` as it was configured, a path made absolute.

    Raises:
        RegistrationError: It names a file that cannot be run.
    """
    if not ripgrep:
        return ripgrep
    program = shutil.which(ripgrep)
    if program is None:
        msg = f"ripgrep={str(ripgrep)!r} is not an executable file; leave it out to have it looked for"
        raise RegistrationError(msg)
    return Path(program).absolute()


def find_ripgrep(configured: Ripgrep = None) -> str | None:
    """The ripgrep to run, or ``None`` if the fallback has to do.

    Args:
        configured: See ``Ripgrep``. When it is ``None``, the folders beside the interpreter are looked in first (the
            ``search`` extra puts ``rg`` there), then ``PATH``.
    """
    if configured is not None:
        return str(configured) if configured else None
    beside = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)] if sys.executable else []
    return shutil.which("rg", path=os.pathsep.join(beside)) or shutil.which("rg")


def glob_option(pattern: str) -> str:
    """The option that restricts a search to a glob."""
    # ripgrep takes a pattern that starts with "#" for a comment, and a comment restricts nothing.
    return f"--glob=\\{pattern}" if pattern.startswith("#") else f"--glob={pattern}"


@attrs.frozen
class SearchPlace:
    """Where a search runs.

    Attributes:
        asked: The folder or file as the call named it, absolute.
        folder: The real path of the folder that globs are anchored in and that the search runs in.
        target: What is searched: ``folder``, or one file in it.
        shown_folder: ``folder`` under the name that the call used for it.
    """

    asked: Path
    folder: str
    target: str
    shown_folder: Path

    def found(self, path: str) -> Path:
        """A path that the search printed, under the name that the call used for the folder."""
        return self.shown_folder / path.removeprefix(self.prefix)

    @property
    def prefix(self) -> str:
        """What every absolute path below ``folder`` starts with."""
        return self.folder.rstrip("/") + "/"


async def search_place(workspace: Workspace, path: str, *, files: bool) -> SearchPlace:
    """Look at what a call wants searched.

    Args:
        workspace: Where ``path`` starts.
        path: A folder; empty for the workspace itself.
        files: Whether it may also be a file.

    Raises:
        ToolError: ``SEARCH_FAILED``: it is not there, or not of that kind.
    """
    asked = workspace.resolve(path)
    try:
        # ripgrep anchors globs in its working directory, which the system spells without links.
        if await trio.Path(asked).is_dir():
            folder = str(await trio.Path(asked).resolve())
            return SearchPlace(asked, folder, folder, asked)
        if files and await trio.Path(asked).exists():
            folder = str(await trio.Path(asked.parent).resolve())
            return SearchPlace(asked, folder, os.path.join(folder, asked.name), asked.parent)  # noqa: PTH118
    except OSError as error:  # not permitted, or a name that is too long
        msg = f"cannot search {str(asked)!r}: {error}"
        raise ToolError(msg, "SEARCH_FAILED") from error
    msg = f"cannot search {str(asked)!r}: " + ("no such file or folder" if files else "it is not a folder")
    raise ToolError(msg, "SEARCH_FAILED")


async def run_search(ripgrep: Ripgrep, arguments: list[str], place: SearchPlace, *, grace: float) -> bytes:
    """Run one search and return all that it printed; nothing if it found nothing.

    Args:
        ripgrep: See ``Ripgrep``.
        arguments: ripgrep's, without the program.
        place: Where it runs.
        grace: Seconds from SIGTERM to SIGKILL when it has to be ended.

    Raises:
        ToolError: With a ``SEARCH_*`` code. A part of the output is never returned.

    Source: ``spec/catalogue.md`` 5.13.
    """
    if any("\0" in argument for argument in arguments):
        msg = "a pattern must not have NUL characters"
        raise ToolError(msg, "SEARCH_INVALID_PATTERN")
    command = Command(
        argv=(*_program(ripgrep), *arguments),
        cwd=place.folder,
        env=command_environment(),
        stdout_limit=_STDOUT_BYTES,
        stderr_limit=_STDERR_BYTES,
        stop_when_cut=True,
    )
    try:
        completed = await run_command(command, grace=grace)
    except ToolError as error:  # it could not be started
        raise ToolError(error.message, "SEARCH_FAILED") from error
    _check(completed)
    return completed.stdout.data


def _program(ripgrep: Ripgrep) -> tuple[str, ...]:
    found = find_ripgrep(ripgrep)
    if found is not None:
        return (found,)
    if not sys.executable:
        msg = "there is neither ripgrep nor a Python interpreter for the fallback: pip install 'quiesce[search]'"
        raise ToolError(msg, "SEARCH_FAILED")
    # The fallback is a program too, so that a pattern that takes for ever can be ended like any process.
    return (sys.executable, "-I", "-S", str(_FALLBACK))


def _check(completed: Completed) -> None:
    if completed.stdout.truncated:
        msg = f"the search found too much (more than {_STDOUT_BYTES} bytes of results); narrow it"
        raise ToolError(msg, "SEARCH_RAW_OUTPUT_OVERFLOW")
    if completed.signal is not None:
        msg = f"the search was killed by {completed.signal}"
        raise ToolError(msg, "SEARCH_FAILED")
    if completed.exit_code not in {0, 1}:
        said = completed.stderr.text.strip() or f"the search ended with exit code {completed.exit_code}"
        raise ToolError(said, "SEARCH_INVALID_PATTERN" if _REFUSED_PATTERN.search(said) else "SEARCH_FAILED")
