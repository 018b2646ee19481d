"""The plain list of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from quiesce.adapters import PLAIN, MessageFormatError, detect
from quiesce.registry import Failure, ImageBlock, Outcome, Success, TextBlock

CALLS: list[dict[str, Any]] = [
    {"name": "read_file", "arguments": {"path": "/etc/hosts"}},
    {"id": "mine", "name": "list_jobs", "arguments": "{}"},
    {"name": "stop"},
]


@pytest.mark.parametrize("document", [CALLS, {"calls": CALLS, "comment": "by hand"}, tuple(CALLS)])
def test_calls_are_read_from_a_list_or_an_object(document: object) -> None:
    """Ids may be left out, arguments may be JSON or its text, or left out where there are none."""
    assert detect(document) is PLAIN
    assert [(call.call_id, call.name, call.arguments) for call in PLAIN.calls(document)] == [
        ("call_1", "read_file", {"path": "/etc/hosts"}),
        ("mine", "list_jobs", {}),
        ("call_3", "stop", {}),
    ]


def test_the_id_may_be_called_call_id() -> None:
    """As ``ToolCall`` calls it."""
    assert PLAIN.calls([{"call_id": "x", "name": "stop"}])[0].call_id == "x"


def test_an_empty_list_asks_for_no_calls() -> None:
    """It is recognised."""
    assert detect([]) is PLAIN
    assert PLAIN.calls([]) == PLAIN.calls({"calls": []}) == []


def test_arguments_under_another_name_are_not_taken_for_none() -> None:
    """A tool must not run with ``{}`` because its arguments were spelt ``args``."""
    with pytest.raises(MessageFormatError, match=r"^calls\[0\]: .*'args'.*expected 'arguments'"):
        PLAIN.calls([{"name": "delete", "args": {"path": "x"}}])


FAULTS: list[tuple[object, str]] = [
    ({"calls": 1}, "document.calls"),
    ({"calls": [[]]}, "document.calls[0]"),
    ({}, "document.calls"),
    ([{"arguments": {}}], "calls[0].name"),
    ([{"name": "a", "id": 3}], "calls[0].id"),
    (True, "document.calls"),
]


@pytest.mark.parametrize(("document", "path"), FAULTS)
def test_a_structural_fault_names_its_place(document: object, path: str) -> None:
    """The error says where."""
    with pytest.raises(MessageFormatError) as caught:
        PLAIN.calls(document)
    assert caught.value.path == path


def test_results_say_all_that_a_program_wants(
    succeeded: Callable[..., Success], failed: Callable[..., Failure]
) -> None:
    """Value, code and effect stand beside the content, the late value of a cancelled call never."""
    denied = attrs.evolve(failed("b", "no"), denied_by="guard", late_value="secret")
    success = succeeded("a", TextBlock("x"), ImageBlock("image/png", "AAAA"), contexts=("c",))
    outcomes: list[Outcome] = [success, denied]
    assert PLAIN.messages(outcomes) == [
        {
            "id": "a",
            "name": "tool",
            "is_error": False,
            "code": None,
            "effect": "completed",
            "content": [{"type": "text", "text": "x"}, {"type": "image", "mediaType": "image/png", "data": "AAAA"}],
            "value": {"n": 1},
            "contexts": ["c"],
        },
        {
            "id": "b",
            "name": "tool",
            "is_error": True,
            "code": "BROKEN",
            "effect": "unknown",
            "content": [{"type": "text", "text": "Error: no"}],
            "denied_by": "guard",
        },
    ]
    assert "contexts" not in PLAIN.messages(outcomes, contexts=False)[0]


def test_tools_are_the_schemas_themselves() -> None:
    """Detached."""
    schema: dict[str, Any] = {"name": "f", "description": "", "parameters": {"type": "object"}}
    assert PLAIN.tools([schema]) == [schema]
