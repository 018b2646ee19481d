"""The text that a shell command's value is shown as."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from ..registry import Arguments, JsonValue

__all__ = ["console_block", "exit_marker", "render_foreground"]

_CUT: Final = "[output truncated; full output: (unavailable)]"


def render_foreground(_arguments: Arguments, value: JsonValue) -> str:
    """Standard output, standard error under ``[stderr]``, and the markers that apply, each on a line of its own.

    The exit marker comes last.

    Source: ``spec/catalogue.md`` 5.4 R.
    """
    fields = cast("Mapping[str, JsonValue]", value)
    stdout, errors = _stream_text(fields["stdout"]), _stream_text(fields["stderr"])
    output = _lines(stdout, f"[stderr]\n{errors}" if errors else "")
    timeout = f"[timed out after {fields['timeoutMs']}ms]" if fields["timedOut"] else ""
    return _lines(output or "(no output)", timeout, exit_marker(fields["exitCode"], fields["signal"]))


def exit_marker(exit_code: JsonValue, killed_by: JsonValue) -> str:
    """The last line about how the command ended, or nothing if it exited with 0."""
    if killed_by is not None:
        return f"[killed by signal: {killed_by}]"
    return f"[exit code: {exit_code}]" if exit_code else ""


def console_block(text: str) -> str:
    """``text`` as a fenced Markdown block; the fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}console\n{text}\n{fence}"


def _stream_text(stream: JsonValue) -> str:
    fields = cast("Mapping[str, JsonValue]", stream)
    return _lines(cast("str", fields["text"]), _CUT if fields["truncated"] else "")


def _lines(*parts: str) -> str:
    """The non-empty parts, each starting on a line of its own."""
    text = ""
    for part in filter(None, parts):
        text += part if not text or text.endswith("\n") else f"\n{part}"
    return text
