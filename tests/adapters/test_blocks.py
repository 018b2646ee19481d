"""Content blocks of one format on their way to another."""

from __future__ import annotations

from typing import Any

import pytest

from quiesce.adapters import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES
from quiesce.registry import JsonValue, Success, block_from_json

PDF = "JVBERi0xLjQ="
PDF_URL = f"data:application/pdf;base64,{PDF}"
FILES: list[dict[str, Any]] = [
    {
        "type": "document",
        "title": "a.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
    },
    {"type": "input_file", "filename": "a.pdf", "file_data": PDF_URL},
    {"type": "input_file", "filename": "a.pdf", "file_data": PDF},
    {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF_URL}},
    {"type": "resource", "resource": {"uri": "a.pdf", "mimeType": "application/pdf", "blob": PDF}},
]


def outcome(block: dict[str, Any]) -> Success:
    """A success with one block."""
    return Success("c", "tool", 0, None, (block_from_json(block),))


def anthropic_block(block: dict[str, Any]) -> Any:
    """What Anthropic is sent for the block."""
    written: Any = ANTHROPIC.messages([outcome(block)])
    return written[0]["content"][0]["content"][0]


@pytest.mark.parametrize("block", FILES)
def test_a_pdf_of_any_format_reaches_every_format(block: dict[str, Any]) -> None:
    """Its bytes and its name arrive; Anthropic's and Responses' own blocks are passed on whole."""
    chat: Any = OPENAI_CHAT.messages([outcome(block)])
    assert chat[1]["content"][1] == {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF_URL}}
    responses: Any = OPENAI_RESPONSES.messages([outcome(block)])
    native = {"type": "input_file", "filename": "a.pdf", "file_data": PDF_URL}
    assert responses[0]["output"] == [block if block["type"] == "input_file" else native]
    assert anthropic_block(block) == FILES[0]


def test_a_document_by_url_reaches_the_formats_that_fetch() -> None:
    """Chat does not fetch files, so only the place is kept."""
    block = {"type": "input_file", "file_url": "https://example.com/a.pdf"}
    assert anthropic_block(block) == {
        "type": "document",
        "source": {"type": "url", "url": "https://example.com/a.pdf"},
    }
    written: Any = OPENAI_CHAT.messages([outcome(block)])
    assert written[0]["content"] == "[input_file content]"


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "document", "title": "Notes", "source": {"type": "text", "data": "remember"}}, "Notes\nremember"),
        ({"type": "document", "source": {"type": "text", "data": "remember"}}, "remember"),
        (
            {
                "type": "search_result",
                "source": "https://example.com",
                "title": "Example",
                "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}, 3, {"text": 4}],
            },
            "Example\nhttps://example.com\none\ntwo",
        ),
        ({"type": "output_text", "text": "said", "annotations": []}, "said"),
        ({"type": "thing", "title": "x" * 300}, f"[thing content: {'x' * 200}]"),
    ],
)
def test_text_in_another_shape_is_shown_as_text(block: dict[str, Any], text: str) -> None:
    """Documents and search results lose their shape, not their words."""
    written: Any = OPENAI_CHAT.messages([outcome(block)])
    assert written[0]["content"] == text


def test_an_image_of_anthropic_reaches_openai() -> None:
    """Base64 source to data URL."""
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lGODlh"}}
    written: Any = OPENAI_RESPONSES.messages([outcome(block)])
    assert written[0]["output"][0]["image_url"] == "data:image/gif;base64,R0lGODlh"


def test_an_image_with_members_of_its_own_is_still_an_image() -> None:
    """What quiesce does not know of an image does not stop it."""
    block = {"type": "image", "url": "https://example.com/a.png", "alt": "A cat"}
    assert anthropic_block(block)["source"] == {"type": "url", "url": "https://example.com/a.png"}


def test_a_file_that_anthropic_refuses_keeps_its_place() -> None:
    """Only PDFs go by value."""
    block = {"type": "input_file", "filename": "a.zip", "file_data": "data:application/zip;base64,UEsDBA=="}
    assert anthropic_block(block) == {"type": "text", "text": "[input_file content: a.zip]"}


def test_base64_that_is_none_is_passed_on_as_it_was_declared() -> None:
    """Only bytes that tell their type overrule the declared one."""
    block = {"type": "image", "mimeType": "image/png", "data": "not base64, but é"}
    assert anthropic_block(block)["source"]["media_type"] == "image/png"


def test_a_context_may_be_one_content_block() -> None:
    """An object with a type is content as it stands."""
    context: JsonValue = {"type": "text", "text": "be brief"}
    written: Any = OPENAI_CHAT.messages([Success("c", "tool", 0, None, (), contexts=(context,))])
    assert written[1] == {"role": "user", "content": "be brief"}
