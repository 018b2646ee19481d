"""Reading the message: every fault names the file, the place and the remedy."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import attrs

from ..adapters import MessageFormat, MessageFormatError, detect
from ..registry import JsonValue, ToolCall, parse_argument_text

__all__ = ["BadInputError", "Message", "read_message"]


class BadInputError(Exception):
    """The input cannot be used; the message is for the person at the keys."""


@attrs.frozen
class Message:
    """A message that was read.

    Attributes:
        format: The format it was found to be in.
        calls: Its calls in model order.
        document: The whole of it.
    """

    format: MessageFormat
    calls: tuple[ToolCall, ...]
    document: JsonValue


def read_message(file: str) -> Message:
    """Read a message from a file, or from standard input for ``-``.

    Raises:
        BadInputError: It cannot be read, is not JSON, or is no message of a known format.
    """
    name = "standard input" if file == "-" else file
    document = _parse(name, _text(name, file))
    try:
        found = detect(document)
        return Message(found, tuple(found.calls(document)), document)
    except MessageFormatError as error:
        msg = f"{name}: {error}"
        raise BadInputError(msg) from error


def _text(name: str, file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        msg = f"{name}: cannot be read: {error.strerror}; give the path of a JSON file, or - for standard input"
        raise BadInputError(msg) from error
    try:
        # A byte order mark is what some editors put in front of UTF-8.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"{name}: byte {error.start} is not UTF-8 ({error.reason}); save the file as UTF-8"
        raise BadInputError(msg) from error


def _parse(name: str, text: str) -> JsonValue:
    if not text.strip():
        msg = f"{name}: is empty; it must hold one message with tool calls, as JSON"
        raise BadInputError(msg)
    document = parse_argument_text(text)
    if document is not text:
        return document
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        msg = f"{name}: {place}: not JSON: {error.msg}; the file must hold one message with tool calls, as JSON"
        raise BadInputError(msg) from error
    except RecursionError:
        pass
    msg = f"{name}: not JSON: it holds NaN, Infinity or a bracket that is not closed; write numbers as JSON has them"
    raise BadInputError(msg)
