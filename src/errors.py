"""Every exception that quiesce raises or turns into a failure.

The class names of the tool-facing errors are what ``Failure.error.name`` shows; their codes are what
``Failure.code`` shows. Source: ``spec/behaviour.md`` D6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .registry._status import CallStatus

__all__ = [
    "AbortError",
    "CrashError",
    "HookError",
    "JournalFileError",
    "JournalLockedError",
    "JournalWriteError",
    "JsonSchemaError",
    "NotLosslessError",
    "QuiesceError",
    "RegistrationError",
    "RuntimeClosedError",
    "SchedulerFault",
    "ToolArgsError",
    "ToolError",
    "ToolNotFoundError",
    "ToolOutputError",
    "ToolTimeoutError",
]


class QuiesceError(Exception):
    """The base of every exception that quiesce defines."""


class RegistrationError(QuiesceError, ValueError):
    """A tool, hook or restriction cannot be registered as asked; the message names what and the remedy."""


class JsonSchemaError(RegistrationError):
    """A schema lies outside the enforced subset.

    Attributes:
        violations: Every violation in walk order, without the common prefix.
        code: ``UNSUPPORTED_SCHEMA``.

    Source: ``spec/behaviour.md`` B2.8.
    """

    code = "UNSUPPORTED_SCHEMA"

    def __init__(self, violations: Sequence[str]) -> None:
        super().__init__(violations)
        self.violations = tuple(violations)

    def __str__(self) -> str:
        return "unsupported JSON schema: " + "; ".join(self.violations)


class NotLosslessError(QuiesceError, ValueError):
    """A value is not lossless JSON.

    Attributes:
        path: Where the offending part sits, as ``a.b[2]``; empty for the value itself.
        problem: What is wrong with it.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.path or 'the value'} is not lossless JSON: {self.problem}"


class ToolError(QuiesceError):
    """What a tool's body or a hook raises to fail its call with a message and a code of its own.

    Args:
        message: What the model is told, after ``Error: ``.
        code: A short stable identifier for programs, or ``None``.
    """

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message, code)
        self.message = message
        self.code = code

    def __str__(self) -> str:
        return self.message


class ToolNotFoundError(ToolError):
    """No tool of that name is visible to the caller; code ``UNKNOWN_TOOL``."""

    def __init__(self, message: str, code: str | None = "UNKNOWN_TOOL") -> None:
        super().__init__(message, code)


class ToolArgsError(ToolError):
    """Arguments break the tool's schema; code ``INVALID_ARGS``.

    Attributes:
        violations: Every violation in schema order.
    """

    def __init__(self, message: str, code: str | None = "INVALID_ARGS", violations: Sequence[str] = ()) -> None:
        super().__init__(message, code)
        self.violations = tuple(violations)

    @classmethod
    def of(cls, violations: Sequence[str]) -> ToolArgsError:
        """The error that lists ``violations`` in the fixed wording (B5.3)."""
        return cls("invalid arguments: " + "; ".join(violations), violations=violations)


class ToolOutputError(ToolError):
    """A value, its rendering or its metadata break the tool's output contract; ``INVALID_TOOL_OUTPUT``."""

    def __init__(self, message: str, code: str | None = "INVALID_TOOL_OUTPUT") -> None:
        super().__init__(message, code)


class ToolTimeoutError(ToolError):
    """A call's own deadline ran out first; code ``TOOL_TIMEOUT``."""

    def __init__(self, message: str, code: str | None = "TOOL_TIMEOUT") -> None:
        super().__init__(message, code)


class AbortError(ToolError):
    """A call was cancelled; code ``ABORTED`` or ``ABORTED_BEFORE_DISPATCH``."""


class CrashError(ToolError):
    """A call was left open by a process that died; code ``TOOL_OUTCOME_UNKNOWN`` or ``TOOL_NOT_STARTED``.

    It is not raised: it is what the failures that ``quiesce.journal.repair`` records are called.
    """


class JournalFileError(QuiesceError):
    """A journal file cannot be used: it is foreign, newer, damaged or unreachable. It was not changed.

    Attributes:
        path: The file.
        problem: What is wrong with it.
        remedy: What to do.
    """

    def __init__(self, path: str, problem: str, remedy: str) -> None:
        super().__init__(path, problem, remedy)
        self.path = path
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"the journal {self.path!r} {self.problem}; {self.remedy}"


class JournalLockedError(JournalFileError):
    """A journal file has a writer already, or is locked by another program."""


class JournalWriteError(JournalFileError):
    """Events could not be written; none of them is in the file, and the journal keeps them for its next flush."""


class HookError(QuiesceError):
    """A hook broke its contract: it returned something else than a decision, or misused ``proceed``."""


class RuntimeClosedError(QuiesceError, RuntimeError):
    """A runtime or batch is used after it ended, or a batch is run twice."""


class SchedulerFault(QuiesceError):  # noqa: N818 - the name is fixed by the design
    """Something inside quiesce or its journal failed; no outcome was made up for the calls it left open.

    The first cause is ``__cause__``.

    Attributes:
        message: What failed.
        statuses: One ``CallStatus`` per call in model order: its committed outcome, or whether its body
            may have run.
    """

    def __init__(self, message: str, statuses: Sequence[CallStatus] = ()) -> None:
        super().__init__(message, statuses)
        self.message = message
        self.statuses = tuple(statuses)

    def __str__(self) -> str:
        return self.message
