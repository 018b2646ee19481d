"""What holds for every format, whatever it is given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiesce.adapters import (
    ANTHROPIC,
    FORMATS,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    PLAIN,
    MessageFormat,
    MessageFormatError,
    detect,
    encode,
)
from quiesce.registry import (
    ContentBlock,
    Effect,
    ErrorInfo,
    Failure,
    ImageBlock,
    Outcome,
    Success,
    TextBlock,
    ToolCall,
    block_from_json,
)

texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
ids = st.sampled_from(["c1", "c2", "c10", "", "\ud835"])
scalars = st.none() | st.booleans() | st.integers() | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
pictures = st.integers(0, 999).map(lambda n: ImageBlock("image/png", f"AA{n:02d}" * 4)) | st.integers(0, 999).map(
    lambda n: ImageBlock(url=f"https://example.com/{n}.png")
)
KINDS = ["audio", "document", "file", "image", "image_url", "input_file", "resource", "search_result", "text", "thing"]
MEMBERS = ["content", "data", "file", "image_url", "resource", "source", "text", "title", "url"]
kinds = st.sampled_from(KINDS).map(lambda kind: {"type": kind})
members = st.dictionaries(st.sampled_from(MEMBERS), values, max_size=3)
others = st.tuples(members, kinds).map(lambda parts: block_from_json(parts[0] | parts[1]))
blocks: st.SearchStrategy[ContentBlock] = texts.map(TextBlock) | pictures | others


def _outcomes(content: st.SearchStrategy[ContentBlock]) -> st.SearchStrategy[list[Outcome]]:
    contents = st.lists(content, max_size=4).map(tuple)
    contexts = st.lists(values, max_size=2).map(tuple)
    success = st.builds(Success, ids, texts, st.just(0), values, contents, contexts=contexts)
    error = st.builds(ErrorInfo, texts, texts, texts)
    failure = st.builds(
        Failure, ids, texts, st.just(0), error, contents, contexts=contexts, effect=st.sampled_from(Effect)
    )
    return st.lists(success | failure, max_size=5)


def results_of(known: MessageFormat, written: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """Id and content of each result, in the order in which they stand, in the format's own shape."""
    if known is OPENAI_CHAT:
        return [(one["tool_call_id"], one["content"]) for one in written if one["role"] == "tool"]
    if known is OPENAI_RESPONSES:
        return [(one["call_id"], one["output"]) for one in written if one["type"] == "function_call_output"]
    if known is ANTHROPIC:
        content = [block for one in written for block in one["content"]]
        return [(one["tool_use_id"], one.get("content")) for one in content if one["type"] == "tool_result"]
    return [(one["id"], one["content"]) for one in written]


every_format = pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.name)


@given(_outcomes(blocks), st.booleans())
def test_every_outcome_has_one_result_in_order(outcomes: list[Outcome], contexts: bool) -> None:
    """Ids align, results come before anything else, and the text of the messages encodes."""
    for known in FORMATS:
        written: Any = known.messages(outcomes, contexts=contexts)
        answered = [call_id for call_id, _content in results_of(known, written)]
        assert answered == [outcome.call_id for outcome in outcomes]
        assert json.loads(encode(written).encode()) == json.loads(json.dumps(written))
        if known in (OPENAI_CHAT, OPENAI_RESPONSES):
            assert len(results_of(known, written[: len(outcomes)])) == len(outcomes)
            assert len(written) <= len(outcomes) + 1
        if known is ANTHROPIC and outcomes:
            (user,) = written
            kinds = [block["type"] for block in user["content"]]
            assert kinds[: len(outcomes)] == ["tool_result"] * len(outcomes)


def images_of(known: MessageFormat, written: Any) -> list[str]:
    """The URLs of all images, those by value as data URLs, in order."""
    if known is OPENAI_CHAT:
        parts: list[Any] = [part for one in written if one["role"] == "user" for part in one["content"]]
        return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    if known is OPENAI_RESPONSES:
        parts = [part for _call_id, output in results_of(known, written) if output for part in output]
        return [part["image_url"] for part in parts]
    blocks: list[Any] = [block for _call_id, content in results_of(known, written) if content for block in content]
    if known is ANTHROPIC:
        sources: list[Any] = [block["source"] for block in blocks if block["type"] == "image"]
        return [source.get("url") or f"data:{source['media_type']};base64,{source['data']}" for source in sources]
    return [block.get("url") or f"data:{block['mediaType']};base64,{block['data']}" for block in blocks]


@given(_outcomes(pictures))
def test_every_image_arrives_in_order(outcomes: list[Outcome]) -> None:
    """No format loses an image, and none changes their order."""
    sent = [block for outcome in outcomes for block in outcome.content if isinstance(block, ImageBlock)]
    urls = [image.url or f"data:{image.media_type};base64,{image.data}" for image in sent]
    for known in FORMATS:
        assert images_of(known, known.messages(outcomes, contexts=False)) == urls


@given(_outcomes(texts.map(TextBlock)))
def test_every_text_arrives_whole(outcomes: list[Outcome]) -> None:
    """Texts are joined or kept apart, never cut; only Anthropic leaves out blank ones."""
    for known in FORMATS:
        for outcome, (_call_id, content) in zip(outcomes, results_of(known, known.messages(outcomes)), strict=True):
            if known in (OPENAI_CHAT, OPENAI_RESPONSES):
                assert content == outcome.text
                continue
            sent = [block.text for block in outcome.content if isinstance(block, TextBlock)]
            if known is ANTHROPIC:
                sent = [text for text in sent if text.strip()] or (["(no content)"] if outcome.is_error else [])
            found: list[Any] = content or []
            assert [block["text"] for block in found] == sent


Written = tuple[str, str, dict[str, Any]]


def documents_of(calls: list[Written]) -> dict[str, Any]:
    """The calls as each format writes them."""
    raw = [(id_, {"name": name, "arguments": json.dumps(arguments)}) for id_, name, arguments in calls]
    tool_calls = [{"id": id_, "type": "function", "function": function} for id_, function in raw]
    uses = [{"type": "tool_use", "id": id_, "name": name, "input": arguments} for id_, name, arguments in calls]
    return {
        "openai-chat": {"role": "assistant", "content": None, "tool_calls": tool_calls},
        "openai-responses": {"output": [{"type": "function_call", "call_id": id_, **body} for id_, body in raw]},
        "anthropic": {"type": "message", "role": "assistant", "content": uses},
        "plain": [{"id": id_, "name": name, "arguments": arguments} for id_, name, arguments in calls],
    }


@given(st.lists(st.tuples(ids, texts, st.dictionaries(texts, values, max_size=3)), max_size=4))
def test_calls_are_read_as_they_were_written(calls: list[Written]) -> None:
    """Ids, names, arguments and order of any calls survive the reading, and their results answer them."""
    documents = documents_of(calls)
    for known in FORMATS:
        document = documents[known.name]
        assert detect(document) is known
        read = known.calls(document)
        # What crosses JSON text joins surrogates that stand side by side.
        through_text = known in (OPENAI_CHAT, OPENAI_RESPONSES)
        sent = [(id_, name, json.loads(json.dumps(body)) if through_text else body) for id_, name, body in calls]
        assert [(call.call_id, call.name, call.arguments) for call in read] == sent
        outcomes = [Success(call.call_id, call.name, index, None, ()) for index, call in enumerate(read)]
        answered = results_of(known, known.messages(outcomes, document=document))
        assert [call_id for call_id, _content in answered] == [id_ for id_, _name, _arguments in calls]


WORDS = (
    *("arguments", "call_id", "calls", "choices", "content", "custom", "function", "function_call", "id", "input"),
    *("message", "messages", "name", "object", "output", "role", "tool_call_id", "tool_calls", "tool_use_id", "type"),
)
NAMES = (
    *("assistant", "custom", "custom_tool_call", "function", "function_call", "function_call_output", "message"),
    *("output_text", "response", "text", "tool", "tool_result", "tool_use", "user"),
)
hostile_scalars = st.sampled_from(NAMES) | st.none() | st.booleans() | st.floats() | st.integers() | texts
hostile = st.recursive(
    hostile_scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5)
        | st.dictionaries(st.none() | st.integers() | texts, inner, max_size=2)
    ),
    max_leaves=25,
)


def refused_or_read(known: MessageFormat, document: object, *, lenient: bool) -> None:
    """Read a document, which may only be refused in the one way."""
    refusal: MessageFormatError | None = None
    calls: list[ToolCall] = []
    try:
        calls = known.calls(document, lenient=lenient)
    except MessageFormatError as error:
        refusal = error
    assert refusal is None or (refusal.path and str(refusal).encode())
    assert all(type(call.call_id) is type(call.name) is str for call in calls)


@settings(max_examples=200)
@given(hostile, st.booleans())
def test_a_hostile_document_raises_nothing_but_the_format_error(document: object, lenient: bool) -> None:
    """Wrong types anywhere are either read or refused with a place, by every format and by ``detect``."""
    for known in FORMATS:
        refused_or_read(known, document, lenient=lenient)
    matching = [known for known in FORMATS if known.matches(document)]
    assert len(matching) <= 1
    try:
        assert [detect(document)] == matching
    except MessageFormatError:
        assert not matching


def corrupted(document: Any, wrong: object) -> Iterator[Any]:
    """The document with each of its parts in turn replaced, and each member in turn left out."""
    yield wrong
    # By name, since isinstance would make Any a container of unknown parts for the type checkers.
    kind = type(document).__name__
    if kind == "dict":
        for key, value in document.items():
            yield {other: kept for other, kept in document.items() if other != key}
            yield from (document | {key: part} for part in corrupted(value, wrong))
    if kind == "list":
        for place, value in enumerate(document):
            yield from ([*document[:place], part, *document[place + 1 :]] for part in corrupted(value, wrong))


@every_format
@pytest.mark.parametrize(
    "wrong", [None, True, 7, 1.5, "x", "\ud800", [], {}, [1], [{}], {"type": [], "id": {}}, object()]
)
def test_a_corrupted_document_raises_nothing_but_the_format_error(known: MessageFormat, wrong: object) -> None:
    """Each part of a good document, replaced by anything else, is either read or refused with a place."""
    document = documents_of([("c1", "f", {"a": [1]}), ("c2", "g", {})])[known.name]
    if known is not PLAIN:
        document = [{"role": "user", "content": "?"}, *document.get("output", [document])]
    for bad in corrupted(document, wrong):
        for reader in FORMATS:
            refused_or_read(reader, bad, lenient=False)
            reader.matches(bad)


@every_format
def test_depth_is_no_limit(known: MessageFormat) -> None:
    """Arguments, and documents in the wrong place, may nest as deep as they like."""
    deep: Any = {}
    for _ in range(10_000):
        deep = [deep]
    name = {"name": "f", "arguments": deep}
    documents: dict[str, Any] = {
        "openai-chat": {"role": "assistant", "tool_calls": [{"id": "a", "function": name}]},
        "openai-responses": {"output": [{"type": "function_call", "call_id": "a", **name}]},
        "anthropic": {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": deep}]},
        "plain": [name],
    }
    (call,) = known.calls(documents[known.name])
    assert call.arguments is deep
    (lenient,) = known.calls(documents[known.name], lenient=True)
    assert lenient.name == "f"
    with pytest.raises(MessageFormatError):
        known.calls(deep)
    outcome = Success("a", "f", 0, deep, (block_from_json({"type": "thing", "deep": deep}),), contexts=(deep,))
    assert encode(known.messages([outcome]))


def test_integers_of_any_size_are_described_without_their_digits() -> None:
    """Python refuses to print very long integers; the error must not."""
    with pytest.raises(MessageFormatError, match="a value of type int"):
        PLAIN.calls([{"name": 10**5000}])
