"""Which format a document's outline belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from ._node import Node

__all__ = ["FormatName", "is_history", "shape_of"]

FormatName: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "plain"]

_ANTHROPIC_BLOCKS: Final = frozenset(
    {
        "mcp_tool_result",
        "mcp_tool_use",
        "redacted_thinking",
        "server_tool_use",
        "thinking",
        "tool_result",
        "tool_use",
        "web_fetch_tool_result",
        "web_search_tool_result",
    }
)
"""Content blocks that only Anthropic has."""

_RESPONSES_ITEMS: Final = frozenset(
    {
        "apply_patch_call",
        "apply_patch_call_output",
        "code_interpreter_call",
        "compaction",
        "computer_call",
        "computer_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "file_search_call",
        "function_call",
        "function_call_output",
        "image_generation_call",
        "item_reference",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "reasoning",
        "shell_call",
        "shell_call_output",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    }
)
"""Items that only OpenAI Responses has. A fixed list: LangChain's ``tool_call``, say, is not one of them."""


def shape_of(document: object) -> FormatName | None:
    """The one format whose outline the document has, or ``None``. Faults further in do not count."""
    node = Node(document, "document")
    if node.is_list:
        return _shape_of_list(node.elements)
    fields = node.fields
    if "choices" in fields:
        return "openai-chat"
    if "output" in fields or fields.get("object") == "response":
        return "openai-responses"
    if "calls" in fields:
        return "plain"
    if "messages" in fields:
        return _shape_of_history(node.get("messages").elements)
    return _shape_of_message(node)


def is_history(nodes: Iterable[Node]) -> bool:
    """Whether these are messages of a chat, in contrast to blocks or calls."""
    return any(node.role for node in nodes)


def _shape_of_message(message: Node) -> FormatName | None:
    fields = message.fields
    if fields.get("tool_calls") is not None or fields.get("function_call") is not None:
        return "openai-chat"
    content = message.get("content")
    if _has_anthropic_block(content.elements) or "stop_reason" in fields:
        return "anthropic"
    if _is_responses_message(message):
        return None
    if message.kind == "message" and content.is_list:
        return "anthropic"
    return "openai-chat" if message.role or "tool_calls" in fields else None


def _shape_of_list(nodes: list[Node]) -> FormatName | None:
    if not nodes:
        return "plain"
    if any(node.kind in _RESPONSES_ITEMS or _is_responses_message(node) for node in nodes):
        return "openai-responses"
    if is_history(nodes):
        return _shape_of_history(nodes)
    if _has_anthropic_block(nodes) or all(node.kind == "text" for node in nodes):
        return "anthropic"
    if any("function" in node.fields or "custom" in node.fields for node in nodes):
        return "openai-chat"
    return "plain" if any("name" in node.fields for node in nodes) else None


def _shape_of_history(messages: list[Node]) -> FormatName:
    for message in messages:
        if message.fields.get("tool_calls") is not None or message.role == "tool":
            return "openai-chat"
        if _has_anthropic_block(message.get("content").elements):
            return "anthropic"
    return "openai-chat"


def _has_anthropic_block(blocks: Iterable[Node]) -> bool:
    return any(block.kind in _ANTHROPIC_BLOCKS for block in blocks)


def _is_responses_message(item: Node) -> bool:
    return any(part.kind in {"input_text", "output_text"} for part in item.get("content").elements)
