"""``bash``: run one shell command in the foreground."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import Final, cast

import attrs

from ..errors import ToolError
from ..registry import EXCLUSIVE, Arguments, JsonValue, Outcome, Output, ToolDefinition, define_tool
from ._process import Command, Completed, run_command
from ._shell_text import console_block, exit_marker, render_foreground
from ._tail import Captured
from ._workspace import Workspace, workspace_of

__all__ = ["bash_tool", "command_environment"]

_SECRET_NAME: Final = re.compile(r"KEY|PASSWORD|SECRET|TOKEN", re.IGNORECASE)
_PLAIN_OUTPUT: Final = {"NO_COLOR": "1", "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat"}

_STREAM: Final[dict[str, JsonValue]] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "text": {"type": "string", "required": True},
        "truncated": {"type": "boolean", "required": True},
    },
}
_VALUE: Final[dict[str, JsonValue]] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "kind": {"type": "string", "const": "foreground", "required": True},
        "exitCode": {"oneOf": [{"type": "integer"}, {"type": "null"}], "required": True},
        "signal": {"oneOf": [{"type": "string"}, {"type": "null"}], "required": True},
        "timedOut": {"type": "boolean", "required": True},
        "aborted": {"type": "boolean", "required": True},
        "timeoutMs": {"type": "number", "required": True},
        "stdout": {**_STREAM, "required": True},
        "stderr": {**_STREAM, "required": True},
    },
}
_PARAMETERS: Final[dict[str, dict[str, JsonValue]]] = {
    "command": {"type": "string", "description": "The bash command to execute.", "required": True},
    "description": {
        "type": "string",
        "description": (
            "What the command does, for the person who watches: active voice, 5 to 10 words, such as "
            '"List files in current directory".'
        ),
        "required": True,
    },
    "timeoutMs": {
        "type": "number",
        "description": "Milliseconds after which the command is ended. Defaults to 120000, at most 600000.",
    },
    "workdir": {
        "type": "string",
        "description": "Folder to run in. Defaults to the workspace; a relative path starts there.",
    },
}
_DESCRIPTION: Final = (
    "Run a bash command and return its output, its error output and its exit code. Each call starts a new shell. "
    "Processes that the command leaves in the background are ended when it exits."
)


def command_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment that commands get.

    Without the variables whose name suggests a secret and without quiesce's own, with colours and pagers switched
    off.

    Args:
        environ: What to start from; this process's environment by default.

    Source: ``spec/catalogue.md`` 5.4 X.
    """
    inherited = os.environ if environ is None else environ
    kept = {
        name: value
        for name, value in inherited.items()
        if not name.startswith("QUIESCE_") and not _SECRET_NAME.search(name)
    }
    return {**kept, **_PLAIN_OUTPUT, "QUIESCE_SHELL": "1"}


@attrs.frozen
class _Bash:
    workspace: Workspace
    default_timeout_ms: float
    max_timeout_ms: float
    output_limit: int
    grace: float

    async def execute(self, arguments: Arguments) -> JsonValue:
        command = _not_blank(arguments, "command")
        _not_blank(arguments, "description")
        timeout_ms = self._timeout_ms(arguments.get("timeoutMs"))
        completed = await run_command(
            Command(
                # After `--`, a command that starts with a dash is still a command.
                argv=("bash", "-c", "--", command),
                cwd=str(self.workspace.resolve(cast("str", arguments.get("workdir", "")))),
                env=command_environment(),
                stdout_limit=self.output_limit,
                stderr_limit=self.output_limit,
            ),
            grace=self.grace,
            timeout=timeout_ms / 1000,
        )
        return _value(completed, timeout_ms)

    def _timeout_ms(self, asked: JsonValue) -> float:
        wanted = self.default_timeout_ms if asked is None else cast("float", asked)
        if wanted <= 0:
            msg = f"timeoutMs must be more than 0, got {wanted!r}"
            raise ToolError(msg)
        effective = min(wanted, self.max_timeout_ms)
        return int(effective) if effective == math.floor(effective) else effective


def _not_blank(arguments: Arguments, name: str) -> str:
    text = cast("str", arguments[name])
    if not text.strip():
        msg = f"{name} must not be blank"
        raise ToolError(msg)
    return text


def _value(completed: Completed, timeout_ms: float) -> JsonValue:
    return {
        "kind": "foreground",
        "exitCode": completed.exit_code,
        "signal": completed.signal,
        "timedOut": completed.timed_out,
        # A cancelled command has no value: its call ends with `Cancelled`.
        "aborted": False,
        "timeoutMs": timeout_ms,
        "stdout": _stream(completed.stdout),
        "stderr": _stream(completed.stderr),
    }


def _stream(captured: Captured) -> JsonValue:
    return {"text": captured.text, "truncated": captured.truncated}


def _meta(_arguments: Arguments, value: JsonValue) -> JsonValue:
    fields = cast("Mapping[str, JsonValue]", value)
    return {"exitCode": fields["exitCode"], "signal": fields["signal"]}


def _present_call(arguments: Arguments) -> JsonValue:
    card: dict[str, JsonValue] = {
        "type": "terminal",
        "title": arguments["command"],
        "description": arguments["description"],
    }
    return {**card, "cwd": arguments["workdir"]} if "workdir" in arguments else card


def _present_result(arguments: Arguments, outcome: Outcome) -> JsonValue:
    if outcome.is_error:
        block: JsonValue = {"type": "text", "text": console_block(outcome.text)}
        return {"type": "generic", "title": arguments["command"], "kind": "execute", "content": [block]}
    match outcome.meta:
        case {"exitCode": code, "signal": killed_by}:
            # The marker is known from the metadata, so output that merely looks like one stays in the body.
            output = outcome.text.removesuffix(exit_marker(code, killed_by)).removesuffix("\n")
            ending: dict[str, JsonValue] = {"exitCode": code} if killed_by is None else {"signal": killed_by}
            return {"type": "terminal", "output": output, **ending}
        case _:
            return None


def bash_tool(
    workspace: Workspace | str | os.PathLike[str],
    *,
    default_timeout_ms: float = 120_000,
    max_timeout_ms: float = 600_000,
    output_limit: int = 64_000,
    grace: float = 3.0,
) -> ToolDefinition:
    """The ``bash`` tool: one command in a new shell, in the foreground.

    Its outcome comes once no process of the command's group is alive, also when the call is cancelled. A time that
    ran out and an exit code other than 0 are results, not errors.

    Args:
        workspace: The folder that commands run in.
        default_timeout_ms: For calls that name no ``timeoutMs``.
        max_timeout_ms: What a longer ``timeoutMs`` is cut to.
        output_limit: Bytes kept of each output stream, from its end.
        grace: Seconds from SIGTERM to SIGKILL, and how long a left-behind process may hold the output open.

    Source: ``spec/catalogue.md`` 5.4.
    """
    bash = _Bash(workspace_of(workspace), default_timeout_ms, max_timeout_ms, output_limit, grace)
    return define_tool(
        "bash",
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        output=Output(_VALUE, render=render_foreground, presentation_meta=_meta),
        execute=bash.execute,
        claims=EXCLUSIVE,
        present_call=_present_call,
        present_result=_present_result,
    )
