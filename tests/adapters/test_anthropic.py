"""Anthropic messages: content blocks as the API writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quiesce.adapters import ANTHROPIC, MessageFormatError, detect
from quiesce.registry import Failure, ImageBlock, Outcome, Success, TextBlock, block_from_json

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="


def content() -> list[dict[str, Any]]:
    """Content with thinking, text, a search that Anthropic ran, and two calls of ours."""
    return [
        {"type": "thinking", "thinking": "Two files.", "signature": "EqQB"},
        {"type": "text", "text": "I'll read both."},
        {"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search", "input": {"query": "hosts"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01", "content": []},
        {"type": "tool_use", "id": "toolu_01A", "name": "read_file", "input": {"path": "/etc/hosts"}},
        {"type": "tool_use", "id": "toolu_01B", "name": "list_jobs", "input": {}},
    ]


def message() -> dict[str, Any]:
    """The response, which is a message."""
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": content(),
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 500, "output_tokens": 80},
    }


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(message(), id="response"),
        pytest.param({"role": "assistant", "content": content()}, id="message"),
        pytest.param(content(), id="content"),
        pytest.param([{"role": "user", "content": "Read."}, message()], id="history"),
        pytest.param({"max_tokens": 9, "messages": [{"role": "user", "content": "?"}, message()]}, id="request"),
    ],
)
def test_calls_are_read_from_every_form_of_a_message(document: object) -> None:
    """Tool uses are ours, in order; tools that run at Anthropic are not."""
    assert detect(document) is ANTHROPIC
    assert [(call.call_id, call.name, call.arguments) for call in ANTHROPIC.calls(document)] == [
        ("toolu_01A", "read_file", {"path": "/etc/hosts"}),
        ("toolu_01B", "list_jobs", {}),
    ]


def test_a_message_without_calls_asks_for_none() -> None:
    """Text alone is recognised as long as the message says whose it is."""
    document = message() | {"content": content()[:2], "stop_reason": "end_turn"}
    assert detect(document) is ANTHROPIC
    assert ANTHROPIC.calls(document) == []
    assert ANTHROPIC.calls({"role": "assistant", "content": "Hello"}) == []


def test_input_that_is_still_text_is_parsed() -> None:
    """Whoever joins the partial JSON of a stream may pass it on as it is, broken or not."""
    blocks = [
        {"type": "tool_use", "id": id_, "name": "f", "input": text} for id_, text in (("a", '{"x":1}'), ("b", "{"))
    ]
    assert [call.arguments for call in ANTHROPIC.calls(blocks)] == [{"x": 1}, "{"]


def test_a_history_whose_calls_are_answered_asks_for_none() -> None:
    """After all results nothing waits; with some results missing it is refused."""
    results = [{"type": "tool_result", "tool_use_id": id_, "content": "."} for id_ in ("toolu_01A", "toolu_01B")]
    assert ANTHROPIC.calls([message(), {"role": "user", "content": results}]) == []
    with pytest.raises(MessageFormatError, match=r"^messages\[0\]: found 1 of 2 calls without a result"):
        ANTHROPIC.calls([message(), {"role": "user", "content": results[:1]}])


FAULTS: list[tuple[object, str]] = [
    ({"role": "assistant", "content": 3}, "message.content"),
    ({"role": "assistant"}, "message.content"),
    ({"role": "user", "content": []}, "message.role"),
    ([{"type": "tool_use", "id": "a", "input": {}}], "content[0].name"),
    ([{"type": "tool_use", "id": 1, "name": "f", "input": {}}], "content[0].id"),
    ([{"type": "tool_use", "name": None}], "content[0].name"),
    ([{"type": "text", "text": "x"}, "y"], "content[1]"),
    ({"messages": {}}, "request.messages"),
    (None, "message"),
]


@pytest.mark.parametrize(("document", "path"), FAULTS)
def test_a_structural_fault_names_its_place(document: object, path: str) -> None:
    """The error says where."""
    with pytest.raises(MessageFormatError) as caught:
        ANTHROPIC.calls(document)
    assert caught.value.path == path


def test_results_are_one_user_message(succeeded: Callable[..., Success], failed: Callable[..., Failure]) -> None:
    """All results stand in one user message, in order, and failures say so."""
    outcomes: list[Outcome] = [succeeded("toolu_01A", TextBlock("a"), TextBlock("b")), failed("toolu_01B", "no")]
    assert ANTHROPIC.messages(outcomes) == [
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_01A",
                    "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_01B",
                    "content": [{"type": "text", "text": "Error: no"}],
                    "is_error": True,
                },
            ],
        }
    ]
    assert ANTHROPIC.messages([]) == []


def test_blank_texts_are_left_out(succeeded: Callable[..., Success], failed: Callable[..., Failure]) -> None:
    """The API refuses blank text blocks, and errors without content."""
    (user,) = ANTHROPIC.messages([succeeded("a", TextBlock(" \n"), TextBlock("")), failed("b")])
    assert user["content"] == [
        {"type": "tool_result", "tool_use_id": "a"},
        {
            "type": "tool_result",
            "tool_use_id": "b",
            "content": [{"type": "text", "text": "(no content)"}],
            "is_error": True,
        },
    ]


def test_images_and_documents_stay_in_the_result(succeeded: Callable[..., Success]) -> None:
    """The API's own blocks pass whole; images and PDFs of other formats are converted."""
    native = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, "title": "t"}
    cached = {"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}
    found = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "hit"}]}
    pdf = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQ="}
    audio = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
    blocks = [block_from_json(block) for block in (native, cached, found, pdf, audio)]  # type: ignore[arg-type]
    images = [ImageBlock("image/png", PNG), ImageBlock(url="https://example.com/a.png"), ImageBlock(url="http://x/a")]
    (user,) = ANTHROPIC.messages([succeeded("a", *images, *blocks)])
    results: Any = user["content"]
    assert results[0]["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "text", "text": "[image content: http://x/a]"},
        native,
        cached,
        found,
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ="},
            "title": "a.pdf",
        },
        {"type": "text", "text": "[audio content]"},
    ]


def test_contexts_follow_all_results_in_the_same_message(succeeded: Callable[..., Success]) -> None:
    """The API wants the results first."""
    (user,) = ANTHROPIC.messages([succeeded("a", contexts=("one",)), succeeded("b", contexts=("two", " "))])
    blocks: Any = user["content"]
    assert [block["type"] for block in blocks] == ["tool_result", "tool_result", "text", "text"]
    assert [block["text"] for block in blocks[2:]] == ["one", "two"]


def test_tools_have_an_input_schema() -> None:
    """The API calls the parameters ``input_schema``."""
    schema: dict[str, Any] = {"name": "f", "description": "Does f.", "parameters": {"type": "object"}}
    assert ANTHROPIC.tools([schema]) == [{"name": "f", "description": "Does f.", "input_schema": {"type": "object"}}]
