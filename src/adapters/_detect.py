"""Finding the format of a document."""

from __future__ import annotations

from typing import Final

from ._anthropic import Anthropic
from ._format import MessageFormat
from ._node import Node
from ._openai_chat import OpenAIChat
from ._openai_responses import OpenAIResponses
from ._plain import Plain
from ._shapes import shape_of

__all__ = ["ANTHROPIC", "FORMATS", "OPENAI_CHAT", "OPENAI_RESPONSES", "PLAIN", "detect"]

OPENAI_CHAT: Final = OpenAIChat()
OPENAI_RESPONSES: Final = OpenAIResponses()
ANTHROPIC: Final = Anthropic()
PLAIN: Final = Plain()
FORMATS: Final[tuple[MessageFormat, ...]] = (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC, PLAIN)
"""Every format that ``detect`` knows."""


def detect(document: object) -> MessageFormat:
    """The format of a document, by its outline alone.

    Where a document asks for no calls and could be of several formats, any of them is right: a text of the
    assistant counts as OpenAI chat, an empty list as plain.

    Args:
        document: See ``MessageFormat``.

    Raises:
        MessageFormatError: It is of no known format.
    """
    name = shape_of(document)
    if name is None:
        Node(document, "document").refuse(
            "expected a chat message with 'tool_calls', a Responses object with 'output', an Anthropic message with "
            "'content' blocks, or a list of {'name', 'arguments'}; name the format if it is one of these"
        )
    return next(known for known in FORMATS if known.name == name)
