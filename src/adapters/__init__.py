"""Other people's message formats: their tool calls in, their tool results out. Plain dicts, no SDK needed."""

from __future__ import annotations

from ._detect import ANTHROPIC, FORMATS, OPENAI_CHAT, OPENAI_RESPONSES, PLAIN, detect
from ._encode import encode
from ._errors import MessageFormatError
from ._format import MessageFormat

__all__ = [
    "ANTHROPIC",
    "FORMATS",
    "OPENAI_CHAT",
    "OPENAI_RESPONSES",
    "PLAIN",
    "MessageFormat",
    "MessageFormatError",
    "detect",
    "encode",
]
