"""Reading the command line."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ._input import BadInputError
from ._run import RunOptions, run
from ._tools import show_tools

__all__ = ["main"]

OK, SOME_FAILED, BAD_INPUT, FAULT, INTERRUPTED = 0, 1, 2, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code.

    0 all calls succeeded, 1 some call failed, 2 bad input, 3 a fault, 130 interrupted.

    Args:
        arguments: Without the program's name; those of the process if omitted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Outcomes may hold lone surrogates, and a terminal may know fewer characters than the text.
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except BadInputError as error:
        print(f"quiesce: {error}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        # The reader of our output went away, which is its right; the interpreter must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SOME_FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="quiesce", description="Run the tool calls of a model's message: overlapped safely, cancelled truthfully."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run_parser = commands.add_parser(
        "run",
        help="run the tool calls of one message",
        description="Read one message with tool calls (OpenAI chat or Responses, Anthropic, or a plain list of calls), "
        "run the calls against the built-in tools, and print every outcome in the message's order. "
        "Exit code: 0 all succeeded, 1 some call failed, 2 bad input, 3 a fault, 130 interrupted.",
    )
    run_parser.add_argument("file", metavar="FILE", help="the message as JSON; - reads standard input")
    run_parser.add_argument("--workspace", type=Path, metavar="DIR", help="where the tools work (default: a new one)")
    run_parser.add_argument("--json", action="store_true", help="print the messages that the API wants next")
    run_parser.add_argument(
        "--max-parallel", type=_positive_int, default=10, metavar="N", help="most calls at once (default: 10)"
    )
    run_parser.add_argument("--deadline", type=_positive_seconds, metavar="SECONDS", help="budget of each call")
    run_parser.set_defaults(command=_run)
    tools_parser = commands.add_parser(
        "tools", help="list the built-in tools", description="List the built-in tools with class and parameters."
    )
    tools_parser.add_argument("--schemas", action="store_true", help="print what a model is shown, as JSON")
    tools_parser.set_defaults(command=_tools)
    return parser


def _run(options: argparse.Namespace) -> int:
    return run(
        RunOptions(
            file=options.file,
            workspace=options.workspace,
            as_json=options.json,
            max_parallel=options.max_parallel,
            deadline=options.deadline,
        )
    )


def _tools(options: argparse.Namespace) -> int:
    show_tools(schemas=options.schemas)
    return OK


def _positive_int(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        msg = f"{text!r} is not a whole number from 1"
        raise argparse.ArgumentTypeError(msg)
    return value


def _positive_seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        msg = f"{text!r} is not a number of seconds above 0"
        raise argparse.ArgumentTypeError(msg)
    return value
