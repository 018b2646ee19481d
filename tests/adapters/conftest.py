"""Outcomes for the tests of the adapters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quiesce.registry import ContentBlock, Effect, ErrorInfo, Failure, JsonValue, Success, TextBlock

Succeeded = Callable[..., Success]
Failed = Callable[..., Failure]


@pytest.fixture
def succeeded() -> Succeeded:
    """Make a success: ``succeeded("c1", TextBlock("done"))``."""

    def make(call_id: str, *content: ContentBlock, index: int = 0, contexts: tuple[JsonValue, ...] = ()) -> Success:
        return Success(call_id, "tool", index, {"n": 1}, content, contexts=contexts)

    return make


@pytest.fixture
def failed() -> Failed:
    """Make a failure: ``failed("c1", "no such file")``; without a message it has no content."""

    def make(call_id: str, message: str = "", *, index: int = 0) -> Failure:
        content = (TextBlock(f"Error: {message}"),) if message else ()
        error = ErrorInfo(message or "hidden", "ToolError", "BROKEN")
        return Failure(call_id, "tool", index, error, content, effect=Effect.UNKNOWN)

    return make
