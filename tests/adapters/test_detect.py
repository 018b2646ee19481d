"""Which format a document is taken for."""

from __future__ import annotations

import pickle

import pytest

from quiesce.adapters import ANTHROPIC, FORMATS, OPENAI_CHAT, OPENAI_RESPONSES, MessageFormatError, detect

KNOWN: list[tuple[object, str]] = [
    ({"choices": "?"}, "openai-chat"),
    ({"role": "assistant", "tool_calls": 3}, "openai-chat"),
    ({"role": "assistant", "content": [{"type": "text", "text": "hi"}]}, "openai-chat"),
    ({"messages": []}, "openai-chat"),
    ([{"role": "tool", "tool_call_id": "a", "content": "x"}], "openai-chat"),
    ({"object": "response", "output": None}, "openai-responses"),
    ([{"type": "function_call"}], "openai-responses"),
    ([{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}], "openai-responses"),
    ({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hi"}]}, "anthropic"),
    ([{"type": "text", "text": "hi"}], "anthropic"),
    ([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}], "anthropic"),
    ({"calls": None}, "plain"),
    ([{"type": "tool_call", "name": "f", "args": {}}], "plain"),
]


@pytest.mark.parametrize(("document", "name"), KNOWN)
def test_the_outline_alone_decides(document: object, name: str) -> None:
    """Exactly one format matches, also where the inside is broken: then that format's error says what."""
    assert detect(document).name == name
    assert [known.name for known in FORMATS if known.matches(document)] == [name]


@pytest.mark.parametrize("document", [None, 1, "x", {}, {"x": 1}, [1], [{}], [[]], {"type": "error", "error": {}}])
def test_an_unknown_document_is_refused_with_a_remedy(document: object) -> None:
    """The error lists what would be known."""
    with pytest.raises(MessageFormatError, match=r"^document: found .*; expected .*tool_calls.*output.*content"):
        detect(document)


def test_a_loose_item_of_a_response_is_not_mistaken_for_a_chat_message() -> None:
    """Its calls would be lost."""
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    with pytest.raises(MessageFormatError):
        detect(item)


def test_the_error_survives_pickling() -> None:
    """It crosses process borders with its fields."""
    error = MessageFormatError("calls[0]", "nothing", "expected a name")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (copy.path, copy.found, copy.remedy, str(copy)) == (
        "calls[0]",
        "nothing",
        "expected a name",
        "calls[0]: found nothing; expected a name",
    )


def test_the_formats_have_stable_names() -> None:
    """Programs choose a format by name."""
    assert [known.name for known in FORMATS] == ["openai-chat", "openai-responses", "anthropic", "plain"]
    assert FORMATS[:3] == (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC)
