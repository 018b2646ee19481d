"""OpenAI Responses: items as the API writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quiesce.adapters import OPENAI_CHAT, OPENAI_RESPONSES, MessageFormatError, detect
from quiesce.registry import Failure, ImageBlock, Outcome, Success, TextBlock, block_from_json

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="


def output() -> list[dict[str, Any]]:
    """The output of a response with reasoning, text, two calls of ours and one of the API's."""
    return [
        {"id": "rs_68", "type": "reasoning", "summary": [], "encrypted_content": None},
        {
            "id": "msg_68",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
        },
        {"id": "ws_68", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "x"}},
        {
            "id": "fc_68",
            "type": "function_call",
            "status": "completed",
            "call_id": "call_A",
            "name": "read_file",
            "arguments": '{"path":"/etc/hosts"}',
        },
        {
            "id": "ctc_68",
            "type": "custom_tool_call",
            "status": "completed",
            "call_id": "call_B",
            "name": "apply_patch",
            "input": "*** Begin Patch",
        },
    ]


def response() -> dict[str, Any]:
    """The whole response."""
    return {"id": "resp_68", "object": "response", "status": "completed", "error": None, "output": output()}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(response(), id="response"),
        pytest.param(output(), id="items"),
        pytest.param([{"role": "user", "content": "Patch it."}, *output()], id="history"),
    ],
)
def test_calls_are_read_from_every_form_of_a_response(document: object) -> None:
    """Function and custom tool calls are ours, in order; what the API runs itself is not."""
    assert detect(document) is OPENAI_RESPONSES
    assert [(call.call_id, call.name, call.arguments) for call in OPENAI_RESPONSES.calls(document)] == [
        ("call_A", "read_file", {"path": "/etc/hosts"}),
        ("call_B", "apply_patch", {"input": "*** Begin Patch"}),
    ]


def test_a_response_without_calls_asks_for_none() -> None:
    """Text alone is recognised."""
    document = {"object": "response", "output": output()[:3]}
    assert detect(document) is OPENAI_RESPONSES
    assert OPENAI_RESPONSES.calls(document) == []
    assert detect(output()[1:2]) is OPENAI_RESPONSES


def test_only_the_last_turn_of_a_history_is_run() -> None:
    """Answered calls are done; calls with input after them but no result are refused."""
    done = {"type": "function_call_output", "call_id": "call_A", "output": "x"}
    later = {"type": "function_call", "call_id": "call_C", "name": "f", "arguments": "{}"}
    history = [output()[3], done, later]
    assert [call.call_id for call in OPENAI_RESPONSES.calls(history)] == ["call_C"]
    assert OPENAI_RESPONSES.calls([output()[3], done]) == []
    with pytest.raises(MessageFormatError, match=r"^items: found 1 of 2 calls without a result"):
        OPENAI_RESPONSES.calls([*output(), done])


FAULTS: list[tuple[object, str]] = [
    ({"output": {}}, "response.output"),
    ({"object": "response"}, "response.output"),
    ({"output": [3]}, "response.output[0]"),
    ([{"type": "function_call", "call_id": "a"}], "items[0].name"),
    ([{"type": "function_call", "call_id": [], "name": "f"}], "items[0].call_id"),
    ([{"type": "custom_tool_call", "call_id": "a", "name": "f", "input": {}}], "items[0].input"),
    (7, "document"),
]


@pytest.mark.parametrize(("document", "path"), FAULTS)
def test_a_structural_fault_names_its_place(document: object, path: str) -> None:
    """The error says where."""
    with pytest.raises(MessageFormatError) as caught:
        OPENAI_RESPONSES.calls(document)
    assert caught.value.path == path


def test_results_are_output_items_of_the_calls_own_kind(
    succeeded: Callable[..., Success], failed: Callable[..., Failure]
) -> None:
    """Given the document, the result of a custom tool has its own type; text alone is a string."""
    outcomes: list[Outcome] = [succeeded("call_A", TextBlock("a"), TextBlock("b")), failed("call_B", "no hunk")]
    assert OPENAI_RESPONSES.messages(outcomes, document=response()) == [
        {"type": "function_call_output", "call_id": "call_A", "output": "a\nb"},
        {"type": "custom_tool_call_output", "call_id": "call_B", "output": "Error: no hunk"},
    ]
    kinds = [item["type"] for item in OPENAI_RESPONSES.messages(outcomes)]
    assert kinds == ["function_call_output", "function_call_output"]


def test_an_empty_result_is_the_empty_text(succeeded: Callable[..., Success]) -> None:
    """The API wants an output, which may be empty."""
    assert OPENAI_RESPONSES.messages([succeeded("c")])[0]["output"] == ""
    assert OPENAI_RESPONSES.messages([]) == []


def test_images_and_files_stay_in_the_result(succeeded: Callable[..., Success]) -> None:
    """An output may be a list of parts, so nothing has to move."""
    pdf = block_from_json(
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ="}}
    )
    link = block_from_json({"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}})
    native = block_from_json({"type": "input_file", "file_id": "file-abc"})
    audio = block_from_json({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"})
    image = ImageBlock("image/png", PNG)
    (item,) = OPENAI_RESPONSES.messages([succeeded("c", TextBlock("see"), image, pdf, link, native, audio)])
    assert item["output"] == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
        {
            "type": "input_file",
            "filename": "document.pdf",
            "file_data": "data:application/pdf;base64,JVBERi0xLjQ=",
        },
        {"type": "input_file", "file_url": "https://example.com/a.pdf"},
        {"type": "input_file", "file_id": "file-abc"},
        {"type": "input_text", "text": "[audio content]"},
    ]


def test_only_a_pdf_is_sent_as_a_file(succeeded: Callable[..., Success]) -> None:
    """A file that the API might refuse leaves its name; the type is taken from the bytes where they tell."""
    archive: dict[str, Any] = {
        "type": "resource",
        "resource": {"uri": "x:a.zip", "mimeType": "application/zip", "blob": "UEsDBA=="},
    }
    hidden: dict[str, Any] = {"type": "resource", "resource": {"uri": "x:a.pdf", "blob": "JVBERi0xLjQ="}}
    local: dict[str, Any] = {"type": "input_file", "file_url": "file:///a.pdf", "filename": "a.pdf"}
    notes: dict[str, Any] = {"type": "resource", "resource": {"uri": "x:notes", "text": "remember"}}
    outcome = succeeded("c", *(block_from_json(block) for block in (archive, hidden, notes)))
    assert OPENAI_RESPONSES.messages([outcome])[0]["output"] == [
        {"type": "input_text", "text": "[resource content: x:a.zip]"},
        {"type": "input_file", "filename": "x:a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQ="},
        {"type": "input_text", "text": "remember"},
    ]
    chat = OPENAI_CHAT.messages([succeeded("c", block_from_json(local))])
    assert chat == [{"role": "tool", "tool_call_id": "c", "content": "[input_file content: a.pdf]"}]


def test_contexts_follow_the_results_as_a_user_message(succeeded: Callable[..., Success]) -> None:
    """They come after all results."""
    written = OPENAI_RESPONSES.messages([succeeded("c", contexts=("be brief",)), succeeded("d")])
    assert [item["type"] for item in written] == ["function_call_output", "function_call_output", "message"]
    assert written[2]["content"] == [{"type": "input_text", "text": "be brief"}]


def test_tools_are_not_strict() -> None:
    """The API's default refuses schemas with optional parameters."""
    schema: dict[str, Any] = {"name": "f", "description": "Does f.", "parameters": {"type": "object"}}
    assert OPENAI_RESPONSES.tools([schema]) == [{"type": "function", **schema, "strict": False}]
