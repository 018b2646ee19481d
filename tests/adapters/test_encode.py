"""JSON text that any writer can take."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiesce.adapters import encode
from quiesce.errors import NotLosslessError

texts = st.text(st.characters(codec=None, exclude_categories=()))
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False).map(abs) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(documents, st.booleans())
def test_every_document_is_written_and_read_back(document: object, pretty: bool) -> None:
    """The text encodes as UTF-8, whatever the strings hold, and means the document."""
    text = encode(document, pretty=pretty)
    assert json.loads(text.encode().decode()) == json.loads(json.dumps(document))


def test_lone_surrogates_are_escaped_and_all_else_is_kept() -> None:
    """The escapes are lower-case, as everywhere in quiesce."""
    assert encode({"\ud835": "é\udc00"}) == '{"\\ud835":"é\\udc00"}'


def test_pretty_text_has_one_member_a_line() -> None:
    """Empty containers stay closed."""
    document: dict[str, Any] = {"a": [1, {}], "b": []}
    assert encode(document, pretty=True) == ('{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}')


def test_depth_is_no_limit() -> None:
    """20,000 levels, both ways of nesting, need no recursion."""
    document: Any = 1
    for _ in range(10_000):
        document = {"a": [document]}
    assert encode(document) == '{"a":[' * 10_000 + "1" + "]}" * 10_000


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (float("nan"), ""),
        ({"a": [1, float("inf")]}, "a[1]"),
        ({"a": {"b": object()}}, "a.b"),
        ([{"a": {1: 2}}], "[0].a"),
        ({1: 2}, ""),
    ],
)
def test_what_is_not_json_is_refused_by_its_place(document: object, path: str) -> None:
    """The error names the place."""
    with pytest.raises(NotLosslessError) as caught:
        encode(document)
    assert caught.value.path == path


def test_a_cycle_is_refused_and_a_shared_part_is_not() -> None:
    """A container inside itself has no text; one that stands in two places is written twice."""
    shared = [1]
    assert encode([shared, shared]) == "[[1],[1]]"
    cycle: dict[str, Any] = {"a": []}
    cycle["a"].append(cycle)
    with pytest.raises(NotLosslessError, match=r"a\[0\].*contains itself"):
        encode(cycle)
