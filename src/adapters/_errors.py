"""The error for documents that do not have the shape of their format."""

from __future__ import annotations

from ..errors import QuiesceError

__all__ = ["MessageFormatError"]


class MessageFormatError(QuiesceError, ValueError):
    """A document does not have the shape that its message format asks for.

    Attributes:
        path: Where it sits, from the name of the whole on, such as ``message.tool_calls[1].function.name``.
        found: What is there, in short.
        remedy: What should be there, or what to do.
    """

    def __init__(self, path: str, found: str, remedy: str) -> None:
        super().__init__(path, found, remedy)
        self.path = path
        self.found = found
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.path}: found {self.found}; {self.remedy}"
