"""The recorded schema and JSON cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from case_files import has_inexact_integer, load_cases, revive
from quiesce import Output, define_tool
from quiesce.errors import JsonSchemaError, NotLosslessError, ToolArgsError
from quiesce.registry import (
    check_schema,
    compile_validator,
    is_json,
    parameters_to_json_schema,
    parse_argument_text,
    snapshot,
    value_to_json_schema,
)

Case = dict[str, Any]


def cases(relative: str) -> list[Any]:
    """The cases of a file as parameters; those that turn on the size of integers are skipped (design 5)."""
    skip = pytest.mark.skip(reason="any int is lossless here: design 5")
    return [
        pytest.param(case, id=case["name"], marks=[skip] if has_inexact_integer(case) else [])
        for case in load_cases(relative)
    ]


def compiled(compile_spec: Callable[[Any], Any], case: Case) -> Any:
    """What compiling the spec of a case gives, as the case tells it."""
    try:
        return {"json_schema": compile_spec(revive(case["spec"]))}
    except JsonSchemaError as error:
        return {"error": {"code": error.code, "message": str(error), "violations": list(error.violations)}}


@pytest.mark.parametrize("case", cases("schema/parameters_to_json_schema.json"))
def test_parameters_compile_as_recorded(case: Case) -> None:
    """The parameter DSL gives the recorded schema, keys in order, or the recorded error."""
    wanted = {key: case[key] for key in ("json_schema", "error") if key in case}
    got = compiled(parameters_to_json_schema, case)
    assert got == revive(wanted)
    assert str(got) == str(revive(wanted)), "key order"


@pytest.mark.parametrize("case", cases("schema/values_to_json_schema.json"))
def test_value_nodes_compile_as_recorded(case: Case) -> None:
    """So does a single value node."""
    assert compiled(value_to_json_schema, case) == revive({k: case[k] for k in ("json_schema", "error") if k in case})


@pytest.mark.parametrize("case", cases("schema/raw_schema_check.json"))
def test_raw_schemas_are_checked_as_recorded(case: Case) -> None:
    """Every violation of the subset, in walk order."""
    assert check_schema(revive(case["schema"])) == case["violations"]


@pytest.mark.parametrize("case", cases("schema/validate_args.json") + cases("schema/validate_args_random.json"))
def test_arguments_are_validated_as_recorded(case: Case) -> None:
    """The violations, in order, and the message that the model is shown."""
    spec = revive(case["spec"])
    if "json_schema" in case:
        assert parameters_to_json_schema(spec) == case["json_schema"]

    def nothing(_: object) -> None: ...

    tool = define_tool("t", description="d", parameters=spec, output=Output({"type": "json"}), execute=nothing)
    violations = tool.check_arguments(revive(case["args"]))
    assert violations == case["violations"]
    if case.get("message") is not None:
        assert str(ToolArgsError.of(violations)) == case["message"]


@pytest.mark.parametrize("case", cases("schema/validate_value.json"))
def test_values_are_validated_as_recorded(case: Case) -> None:
    """The violations of an output value."""
    assert compile_validator(case["schema"])(revive(case["value"]), case["path"]) == case["violations"]


def deep_list(bottom: object) -> object:
    """A list nested 20,000 deep."""
    value = bottom
    for _ in range(20_000):
        value = [value]
    return value


def cycle(make: str) -> object:
    """The cyclic values that the cases describe."""
    if make == "list_cycle":
        array: list[object] = []
        array.append(array)
        return array
    mapping: dict[str, Any] = {"l": [1]}
    mapping["l"].append(mapping)
    return mapping


class SomeClass:
    """A user's class."""


class SomeList(list[int]):
    """A list subclass."""


def built(name: str) -> object:
    """The values that JSON cannot carry."""
    shared = {"k": 1}
    makers: dict[str, Callable[[], object]] = {
        "list_cycle": lambda: cycle("list_cycle"),
        "indirect_cycle": lambda: cycle("indirect_cycle"),
        "shared_not_cycle": lambda: [shared, shared, {"again": shared}],
        "deep_list_20000": lambda: deep_list(1),
        "deep_list_20000_nan": lambda: deep_list(float("nan")),
        "wide_list_100000": lambda: [0] * 100_000,
        "class_instance": SomeClass,
        "list_subclass": lambda: SomeList([1]),
        "function": lambda: built,
        "non_string_key": lambda: {1: "x"},
        "map": lambda: {1, 2},
        "bytes": lambda: b"x",
    }
    if name not in makers:
        pytest.skip(f"no recipe for {name}; add one beside the others")
    return makers[name]()


@pytest.mark.parametrize("case", cases("json/snapshot.json"))
def test_lossless_json_is_recognised_as_recorded(case: Case) -> None:
    """``is_json`` and ``snapshot`` accept exactly the recorded values."""
    value = revive(case["input"]) if "input" in case else built(case["name"])
    assert is_json(value) == case["accepted"]
    if case["accepted"]:
        snapshot(value)
    else:
        with pytest.raises(NotLosslessError):
            snapshot(value)


@pytest.mark.parametrize("case", cases("json/snapshot_facts.json"))
def test_a_snapshot_is_detached_and_unshares(case: Case) -> None:
    """Changing the original changes nothing in the copy; a shared part becomes two."""
    inner: list[int] = [1]
    copy: Any = snapshot({"a": inner, "b": inner})
    inner.append(2)
    assert (copy == {"a": [1], "b": [1]}) == case["detached"]
    assert (copy["a"] is not copy["b"]) == case["shared_becomes_two_copies"]


@pytest.mark.parametrize("case", cases("json/argument_text.json"))
def test_argument_text_is_read_as_recorded(case: Case) -> None:
    """Empty is ``{}``, JSON is parsed, anything else stays text; then the lossless check."""
    value = parse_argument_text(case["text"])
    if has_inexact_integer(value):
        pytest.skip("any int is lossless here: design 5")
    assert (value == case["text"] and isinstance(value, str)) == (case["parsed_as"] == "text")
    assert is_json(value) == case["lossless"]
    if "value" in case:
        assert value == case["value"]
