"""OpenAI chat completions: messages as the API and its imitators write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quiesce.adapters import OPENAI_CHAT, MessageFormatError, detect
from quiesce.registry import Failure, ImageBlock, OtherBlock, Outcome, Success, TextBlock, block_from_json

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="


def message() -> dict[str, Any]:
    """An assistant message with two calls."""
    return {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [
            {
                "id": "call_9pw1",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city":"Łódź","units":"c"}'},
            },
            {"id": "call_Gq7d", "type": "function", "function": {"name": "get_time", "arguments": ""}},
        ],
    }


def response() -> dict[str, Any]:
    """A whole response around that message."""
    return {
        "id": "chatcmpl-BxT1",
        "object": "chat.completion",
        "created": 1764547200,
        "model": "gpt-5-mini",
        "choices": [{"index": 0, "message": message(), "logprobs": None, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 91, "completion_tokens": 44, "total_tokens": 135},
    }


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(message(), id="message"),
        pytest.param(response(), id="response"),
        pytest.param(message()["tool_calls"], id="tool-calls"),
        pytest.param([{"role": "user", "content": "Weather?"}, message()], id="history"),
        pytest.param({"model": "m", "messages": [{"role": "user", "content": "?"}, message()]}, id="request"),
    ],
)
def test_calls_are_read_from_every_form_of_a_message(document: object) -> None:
    """The message, its response, its history and its bare calls give the same calls, and are recognised."""
    calls = detect(document).calls(document)
    assert detect(document) is OPENAI_CHAT
    assert [(call.call_id, call.name, call.arguments) for call in calls] == [
        ("call_9pw1", "get_weather", {"city": "Łódź", "units": "c"}),
        ("call_Gq7d", "get_time", {}),
    ]
    assert calls[0].arguments_text == '{"city":"Łódź","units":"c"}'


def test_a_message_without_calls_asks_for_none() -> None:
    """A plain answer, an empty list and a null list are recognised and give no calls."""
    extras: list[dict[str, Any]] = [{}, {"tool_calls": None}, {"tool_calls": []}]
    for extra in extras:
        document = {"role": "assistant", "content": "It rains."} | extra
        assert detect(document) is OPENAI_CHAT
        assert OPENAI_CHAT.calls(document) == []


def test_malformed_arguments_become_a_call_that_will_fail() -> None:
    """Text that is not JSON is kept as it is, never read as an empty object."""
    broken = message()
    broken["tool_calls"][0]["function"]["arguments"] = '{"city": "Łó'
    broken["tool_calls"][1]["function"]["arguments"] = None
    first, second = OPENAI_CHAT.calls(broken)
    assert first.arguments == first.arguments_text == '{"city": "Łó'
    assert second.arguments is None


def test_arguments_may_be_an_object_already() -> None:
    """Some servers send the arguments parsed."""
    parsed = message()
    parsed["tool_calls"][0]["function"]["arguments"] = {"city": "Oslo"}
    assert OPENAI_CHAT.calls(parsed)[0].arguments == {"city": "Oslo"}
    assert OPENAI_CHAT.calls(parsed)[0].arguments_text is None


def test_a_custom_tool_gets_its_text_as_the_argument_input() -> None:
    """Free text for a custom tool is data, also where it looks like JSON."""
    call = {"id": "call_x", "type": "custom", "custom": {"name": "patch", "input": '{"a": 1}'}}
    (read,) = OPENAI_CHAT.calls({"role": "assistant", "tool_calls": [call]})
    assert (read.name, read.arguments) == ("patch", {"input": '{"a": 1}'})


def test_lenient_reading_mends_blank_and_doubly_encoded_arguments() -> None:
    """Only when asked, blank text is an empty object and one level of double encoding is undone."""
    odd = message()
    odd["tool_calls"][0]["function"]["arguments"] = '"{\\"city\\": \\"Oslo\\"}"'
    odd["tool_calls"][1]["function"]["arguments"] = " \n"
    assert [call.arguments for call in OPENAI_CHAT.calls(odd)] == ['{"city": "Oslo"}', " \n"]
    assert [call.arguments for call in OPENAI_CHAT.calls(odd, lenient=True)] == [{"city": "Oslo"}, {}]


def test_lenient_reading_follows_the_schema_of_the_tool() -> None:
    """A list in text becomes a list where the schema wants one, and stays text where it wants text."""
    odd = message()
    odd["tool_calls"][0]["function"]["arguments"] = '{"city": "[1]", "days": "[1, 2]"}'
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}},
    }
    call = OPENAI_CHAT.calls(odd, lenient=True, schemas={"get_weather": schema})[0]
    assert call.arguments == {"city": "[1]", "days": [1, 2]}


def test_a_call_without_an_id_gets_one_by_its_place() -> None:
    """Servers that leave the id out still get one label per call."""
    anonymous = message()
    del anonymous["tool_calls"][1]["id"]
    assert [call.call_id for call in OPENAI_CHAT.calls(anonymous)] == ["call_9pw1", "call_2"]


def test_a_history_whose_calls_are_answered_asks_for_none() -> None:
    """After all results nothing waits; with some results missing it is unclear what to run, and refused."""
    answers = [{"role": "tool", "tool_call_id": id_, "content": "."} for id_ in ("call_9pw1", "call_Gq7d")]
    assert OPENAI_CHAT.calls([message(), *answers, {"role": "user", "content": "Thanks"}]) == []
    with pytest.raises(MessageFormatError, match=r"^messages\[0\]: found 1 of 2 calls without a result"):
        OPENAI_CHAT.calls([message(), answers[0]])


FAULTS: list[tuple[object, str]] = [
    ({"role": "assistant", "tool_calls": {}}, "message.tool_calls"),
    ({"role": "assistant", "tool_calls": ["x"]}, "message.tool_calls[0]"),
    ({"role": "assistant", "tool_calls": [{"id": "a"}]}, "message.tool_calls[0].function"),
    ({"role": "assistant", "tool_calls": [{"function": {"name": 3}}]}, "message.tool_calls[0].function.name"),
    ({"tool_calls": [{"id": 7, "function": {"name": "f"}}]}, "message.tool_calls[0].id"),
    ({"tool_calls": [{"type": "custom", "custom": {"name": "f"}}]}, "message.tool_calls[0].custom.input"),
    ({"role": "user", "content": "hi"}, "message.role"),
    ({"choices": []}, "response.choices"),
    ({"choices": [{"delta": {"tool_calls": []}}]}, "response.choices[0]"),
    ({"choices": [{"message": {"tool_calls": 1}}]}, "response.choices[0].message.tool_calls"),
    ({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}, "message.function_call"),
    ([{"function": {}}], "tool_calls[0].function.name"),
    ([{"role": "assistant", "tool_calls": [{}]}], "messages[0].tool_calls[0].function"),
    ({"messages": [{"role": "assistant"}, None]}, "request.messages[1]"),
    ("text", "message"),
    ({}, "message"),
]


@pytest.mark.parametrize(("document", "path"), FAULTS)
def test_a_structural_fault_names_its_place(document: object, path: str) -> None:
    """The error says where, what was found, and what to do."""
    with pytest.raises(MessageFormatError) as caught:
        OPENAI_CHAT.calls(document)
    assert caught.value.path == path
    assert caught.value.found
    assert caught.value.remedy in str(caught.value)


def test_results_are_tool_messages_in_order(succeeded: Callable[..., Success], failed: Callable[..., Failure]) -> None:
    """One tool message per outcome, also where ids repeat; several texts are joined by line breaks."""
    outcomes: list[Outcome] = [succeeded("c1", TextBlock("a"), TextBlock("b")), failed("c1", "no"), succeeded("c2")]
    assert OPENAI_CHAT.messages(outcomes) == [
        {"role": "tool", "tool_call_id": "c1", "content": "a\nb"},
        {"role": "tool", "tool_call_id": "c1", "content": "Error: no"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
    ]
    assert OPENAI_CHAT.messages([]) == []


def test_images_follow_all_tool_messages_in_one_user_message(succeeded: Callable[..., Success]) -> None:
    """A tool message cannot hold an image: it says so in its place, and the images come after all results."""
    outcomes = [
        succeeded("c1", TextBlock("before"), ImageBlock("image/png", PNG), TextBlock("after")),
        succeeded("c2", ImageBlock(url="https://example.com/cat.jpg")),
    ]
    first, second, user = OPENAI_CHAT.messages(outcomes)
    assert first["content"] == "before\n[image 1: see the user message after the tool results]\nafter"
    assert second["content"] == "[image 2: see the user message after the tool results]"
    assert user == {
        "role": "user",
        "content": [
            {"type": "text", "text": "[image 1, from the result of tool, call c1]"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            {"type": "text", "text": "[image 2, from the result of tool, call c2]"},
            {"type": "image_url", "image_url": {"url": "https://example.com/cat.jpg"}},
        ],
    }


def test_files_and_audio_in_the_formats_own_shape_follow_too(succeeded: Callable[..., Success]) -> None:
    """Parts that a user message can hold are passed on whole; a PDF of another format is converted."""
    audio = block_from_json({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}})
    pdf = block_from_json(
        {
            "type": "document",
            "title": "report.pdf",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQ="},
        }
    )
    tool, user = OPENAI_CHAT.messages([succeeded("c1", audio, pdf)])
    assert tool["content"] == (
        "[audio 1: see the user message after the tool results]\n[file 2: see the user message after the tool results]"
    )
    parts: Any = user["content"]
    assert parts[1] == {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    assert parts[3]["file"] == {"filename": "report.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQ="}


def test_a_block_that_cannot_be_carried_keeps_its_place(succeeded: Callable[..., Success]) -> None:
    """Nothing vanishes silently."""
    audio = block_from_json({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"})
    link = block_from_json({"type": "resource_link", "uri": "file:///notes.txt", "name": "notes.txt"})
    assert isinstance(audio, OtherBlock)
    (tool,) = OPENAI_CHAT.messages([succeeded("c1", audio, link, ImageBlock("image/tiff", "AAAA"))])
    assert tool["content"] == "[audio content]\n[resource_link content: notes.txt]\n[image content: image/tiff]"


def test_contexts_follow_the_results_as_the_users_text(succeeded: Callable[..., Success]) -> None:
    """Contexts are for the next request: after all results, in model order, unless they are not wanted."""
    block = {"type": "image", "url": "https://example.com/a.png"}
    outcomes = [
        succeeded("c1", TextBlock("x"), contexts=("be brief",)),
        succeeded("c2", TextBlock("y"), contexts=({"content": "no retries", "source": {"kind": "plugin"}}, {"n": 1})),
    ]
    assert OPENAI_CHAT.messages(outcomes)[2:] == [{"role": "user", "content": 'be brief\n\nno retries\n\n{"n":1}'}]
    assert len(OPENAI_CHAT.messages(outcomes, contexts=False)) == 2
    user: Any = OPENAI_CHAT.messages([succeeded("c1", contexts=([block],))])[1]
    assert user["content"] == [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]


def test_tools_are_functions() -> None:
    """The request's list of tools is detached from the schemas."""
    schema: dict[str, Any] = {"name": "f", "description": "Does f.", "parameters": {"type": "object", "properties": {}}}
    (written,) = OPENAI_CHAT.tools([schema])
    assert written == {"type": "function", "function": schema}
    written["function"]["parameters"]["properties"]["x"] = {}  # type: ignore[index,call-overload]
    assert schema["parameters"]["properties"] == {}


def test_objects_of_an_sdk_are_read_like_their_data() -> None:
    """An SDK's response, and its message inside a history of dicts, need no dump by hand."""

    class Dumped:
        def __init__(self, data: object) -> None:
            self.data = data

        def to_dict(self) -> object:
            return self.data

    class Pydantic:
        def model_dump(self) -> object:
            return {"choices": [{"message": Dumped(message())}]}

    for document in (Pydantic(), [{"role": "user", "content": "?"}, Dumped(message())]):
        assert detect(document) is OPENAI_CHAT
        assert len(OPENAI_CHAT.calls(document)) == 2
