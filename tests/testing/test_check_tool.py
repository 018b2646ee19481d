# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
"""check_tool finds what is wrong with a tool, names the rule, shows small arguments, and lets good tools pass."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest
import trio
import trio.lowlevel
from hypothesis import strategies as st

from quiesce import INDEPENDENT, PARALLEL, Claims, RunContext, ToolDefinition, ToolError, define_tool, tool
from quiesce.registry import Arguments, JsonValue, define_raw_tool
from quiesce.testing import ToolCheckError, ToolFinding, check_tool
from quiesce.tools import glob_tool, grep_tool, read_tool

Make = Callable[[], ToolDefinition]


def findings_of(checked: ToolDefinition | Make, **options: Any) -> list[ToolFinding]:
    """What a check finds."""
    options.setdefault("examples", 20)
    with pytest.raises(ToolCheckError) as caught:
        check_tool(checked, **options)
    assert all(str(finding) in str(caught.value) for finding in caught.value.findings)
    return list(caught.value.findings)


def only_finding_of(checked: ToolDefinition | Make, **options: Any) -> ToolFinding:
    """What a check finds, if that is one thing."""
    (finding,) = findings_of(checked, **options)
    return finding


def test_a_good_tool_passes_and_the_report_says_what_was_tried() -> None:
    """Nothing is found, and the numbers show that it was not for want of trying."""

    @tool(concurrency=PARALLEL, idempotent=True)
    async def repeat(text: str, times: int = 2) -> str:
        """Repeat."""
        return text * max(0, min(times, 5))

    report = check_tool(repeat, examples=20)
    assert report.accepted > 20
    assert report.refused > 2
    assert report.pairs > 10
    assert report.cancels > 10
    assert report.unclear == 0
    assert report.runs > report.pairs + report.cancels


def test_the_same_seed_makes_the_same_check() -> None:
    """Reports and findings repeat."""

    @tool(concurrency=PARALLEL)
    async def length(text: str) -> int:
        """Count."""
        return len(text)

    assert check_tool(length, examples=10, seed=3) == check_tool(length, examples=10, seed=3)


def test_an_exception_that_is_no_tool_error_is_found_with_the_smallest_arguments() -> None:
    """Raises: class and text are named; each class of exception is a finding of its own."""

    @tool(concurrency=PARALLEL)
    async def pick(items: list[int], at: int) -> int:
        """Pick."""
        if at < 0:
            raise OverflowError("negative")
        return items[at]

    found = {finding.message.split()[0]: finding for finding in findings_of(pick)}
    assert set(found) == {"IndexError", "OverflowError"}
    assert {finding.rule for finding in found.values()} == {"raises"}
    assert found["IndexError"].arguments == ({"items": [], "at": 0},)
    assert found["OverflowError"].arguments == ({"items": [], "at": -1},)


def test_an_exception_may_be_allowed_and_a_tool_error_always_is() -> None:
    """What is expected is no finding."""

    @tool(concurrency=PARALLEL)
    async def pick(items: list[int], at: int) -> int:
        """Pick."""
        if at < 0:
            raise ToolError("negative", "NEGATIVE")
        return items[at]

    assert check_tool(pick, examples=20, allowed=(LookupError, OverflowError)).accepted


def test_odd_inputs_are_tried() -> None:
    """Lone surrogates, integers beyond any float, deep nesting and long texts break what cannot take them."""

    @tool(concurrency=PARALLEL)
    async def surrogate(text: str) -> int:
        """Encode."""
        return len(text.encode())

    assert only_finding_of(surrogate, examples=60).message.startswith("UnicodeEncodeError")

    @tool(concurrency=PARALLEL)
    async def huge(number: int) -> str:
        """Divide."""
        return str(number / 3)

    assert only_finding_of(huge, examples=60).message.startswith("OverflowError")

    def depth(value: object) -> int:
        if isinstance(value, list):
            return 1 + max(map(depth, value), default=0)
        return 1 + max(map(depth, value.values()), default=0) if isinstance(value, dict) else 0

    @tool(concurrency=PARALLEL)
    async def deep(value: Any) -> int:
        """Measure."""
        found = depth(value)
        if found > 100:
            raise RecursionError
        return found

    assert only_finding_of(deep, examples=60).message.startswith("RecursionError")

    @tool(concurrency=PARALLEL)
    async def long(text: str) -> str:
        """Limit."""
        if len(text) > 1000:
            raise MemoryError
        return text

    finding = only_finding_of(long, examples=60)
    assert finding.arguments == ({"text": "x" * 1001},)
    assert "1013 characters" in str(finding) or "characters)" in str(finding)


def test_invalid_output_is_found() -> None:
    """Output: the tool's own contract, with the path."""

    @tool(concurrency=PARALLEL)
    async def half(number: int) -> int:
        """Halve."""
        return number // 2 if number % 2 == 0 else number / 2  # type: ignore[return-value] # pyright: ignore[reportReturnType]

    finding = only_finding_of(half)
    assert finding.rule == "output"
    assert finding.arguments == ({"number": 1},)


def test_a_tool_that_never_ends_is_found() -> None:
    """Settles: a deadlock, and a loop that goes on for ever."""

    @tool(concurrency=PARALLEL)
    async def stuck(number: int) -> None:
        """Wait."""
        if number > 3:
            await trio.Event().wait()

    finding = only_finding_of(stuck)
    assert (finding.rule, finding.arguments) == ("settles", ({"number": 4},))
    assert "Deadlock" in finding.message

    @tool(concurrency=PARALLEL)
    async def spins(flag: bool) -> None:
        """Spin."""
        while flag:  # noqa: ASYNC110
            await trio.lowlevel.checkpoint()

    finding = only_finding_of(spins, examples=5, max_steps=300)
    assert (finding.rule, finding.arguments) == ("settles", ({"flag": True},))


def test_a_tool_that_does_not_settle_once_cancelled_is_found() -> None:
    """Cancel: a shielded wait for what will not come holds its batch for ever; the step is named."""

    @tool(concurrency=PARALLEL)
    async def clings(number: int) -> None:
        """Wait."""
        try:
            await trio.sleep(1)
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await trio.Event().wait()
            raise

    finding = only_finding_of(clings)
    assert (finding.rule, finding.arguments) == ("cancel", ({"number": 0},))
    assert "cancelled after step" in finding.message
    assert check_tool(clings, examples=10, cancel=False).cancels == 0


def test_a_clean_up_that_breaks_when_cancelled_is_found() -> None:
    """Raises: also on the way out of a cancel."""

    @tool(concurrency=PARALLEL)
    async def breaks(number: int) -> None:
        """Wait."""
        done = False
        try:
            await trio.sleep(1)
            done = True
        finally:
            if not done:
                raise KeyError("never opened")

    finding = only_finding_of(breaks)
    assert finding.rule == "raises"
    assert "cancelled after step" in finding.message
    assert "KeyError" in finding.message


def test_a_tool_that_drains_when_cancelled_passes() -> None:
    """Tidying up under a shield, with an end, is how it should be."""

    @tool(concurrency=PARALLEL)
    async def drains(number: int) -> None:
        """Wait."""
        try:
            await trio.sleep(1)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(5)

    assert check_tool(drains, examples=10).cancels


def test_a_body_that_exits_the_program_is_found() -> None:
    """Raises: SystemExit from a body ends no check."""

    @tool(concurrency=PARALLEL)
    async def leaves(flag: bool) -> None:
        """Leave."""
        if flag:
            sys.exit(3)

    finding = only_finding_of(leaves, examples=5)
    assert (finding.rule, finding.arguments) == ("raises", ({"flag": True},))
    assert "SystemExit" in finding.message


def body_of(answer: object = None) -> Callable[[Arguments], Any]:
    """A body that answers."""

    async def body(arguments: Arguments) -> object:
        return answer

    return body


def text_tool(claims: Any) -> ToolDefinition:
    """A tool that does nothing, with this classifier."""
    return define_tool(
        "classified",
        description="d",
        parameters={"key": {"type": "string", "required": True}},
        output={"schema": {"type": "json"}},
        execute=body_of(),
        claims=claims,
    )


def test_a_classifier_that_raises_or_answers_something_else_is_found() -> None:
    """Classifier: both make every call exclusive, without a word."""
    finding = only_finding_of(text_tool(lambda arguments: Claims(writes={arguments["key"][3]})))
    assert (finding.rule, finding.arguments) == ("classifier", ({"key": ""},))
    assert "IndexError" in finding.message
    finding = only_finding_of(text_tool(lambda arguments: {arguments["key"]}))
    assert (finding.rule, finding.arguments) == ("classifier", ({"key": ""},))
    assert "neither a bool nor Claims" in finding.message


def test_a_classifier_that_changes_its_mind_is_found() -> None:
    """Classifier: it must say the same for the same arguments, before and after a call."""
    asked: list[object] = []

    def wavering(arguments: Arguments) -> Claims:
        asked.append(arguments)
        return Claims(writes={str(len(asked))})

    assert {finding.rule for finding in findings_of(text_tool(wavering))} == {"classifier"}
    done: set[str] = set()

    def fresh() -> ToolDefinition:
        async def body(arguments: Arguments) -> None:
            done.add(str(arguments["key"]))

        return attrs.evolve(
            text_tool(lambda arguments: Claims(reads={"k"} if arguments["key"] in done else {"other"})),
            bind=lambda arguments, run: lambda: body(arguments),
        )

    finding = findings_of(fresh, arguments=st.fixed_dictionaries({"key": st.text()}))[0]
    assert finding.rule == "classifier"


def test_a_classifier_of_the_arguments_passes() -> None:
    """A pure function of the arguments is what it should be."""
    assert check_tool(text_tool(lambda arguments: Claims(writes={arguments["key"]})), examples=20).pairs


class Store:
    """A world for tools: keys and values, written in two steps."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}

    def tool(self, claims: Any, *, adds: bool = False, idempotent: bool = False) -> ToolDefinition:
        """A tool ``put`` on a store that is empty again."""
        self.values.clear()

        @tool(concurrency=claims, idempotent=idempotent)
        async def put(key: str, value: int) -> int:
            """Put."""
            before = self.values.get(key, 0)
            await trio.lowlevel.checkpoint()
            self.values[key] = before + value if adds else value
            return self.values[key] if adds else value

        return put

    def look(self) -> object:
        """What is in it."""
        return self.values


def by_key(arguments: Arguments) -> Claims:
    """Claims on the key that is written."""
    return Claims(writes={f"k:{arguments['key']}"})


def test_calls_that_say_they_do_not_conflict_but_do_are_found() -> None:
    """Claims: two writes of one key, told apart by the state that is left."""
    store = Store()
    finding = only_finding_of(lambda: store.tool(INDEPENDENT), observe=store.look)
    assert finding.rule == "claims"
    first, second = finding.arguments
    assert first == {"key": "", "value": 0}
    assert second in ({"key": "", "value": 1}, {"key": "", "value": -1})
    assert "in the other order" in finding.message


def test_a_lost_update_is_found_by_running_both_together() -> None:
    """Claims: additions give the same in either order, but not when they overlap."""
    store = Store()

    def fresh() -> ToolDefinition:
        made = store.tool(INDEPENDENT, adds=True)
        return attrs.evolve(made, unstructure=lambda value: 0)

    finding = only_finding_of(fresh, observe=store.look)
    assert finding.rule == "claims"
    assert "together" in finding.message
    assert all(isinstance(each, dict) and each["key"] == "" for each in finding.arguments)


def test_honest_claims_pass() -> None:
    """Claims: by key is enough for a store by key."""
    store = Store()
    assert check_tool(lambda: store.tool(by_key), observe=store.look, examples=30).pairs


def test_a_tool_that_says_it_only_reads_but_writes_is_found() -> None:
    """Claims: PARALLEL reads anything and changes nothing."""
    store = Store()
    found = findings_of(lambda: store.tool(PARALLEL), observe=store.look)
    assert {finding.rule for finding in found} == {"claims"}
    assert "writes nothing" in found[0].message
    assert found[0].arguments == ({"key": "", "value": 0},)


def test_what_says_it_is_idempotent_and_is_not_is_found() -> None:
    """Idempotent: an addition made twice is another sum; by result as by state."""
    store = Store()
    finding = only_finding_of(lambda: store.tool(by_key, adds=True, idempotent=True))
    assert (finding.rule, finding.arguments) == ("idempotent", ({"key": "", "value": 1},))

    def silent() -> ToolDefinition:
        return attrs.evolve(store.tool(by_key, adds=True, idempotent=True), unstructure=lambda value: 0)

    finding = only_finding_of(silent, observe=store.look)
    assert finding.rule == "idempotent"
    assert "the state is another" in finding.message


def test_what_says_it_is_idempotent_and_is_passes() -> None:
    """Idempotent: putting a value twice is putting it once; without the claim nothing is asked."""
    store = Store()
    check_tool(lambda: store.tool(by_key, idempotent=True), observe=store.look, examples=20)
    check_tool(lambda: store.tool(by_key, adds=True), observe=store.look, examples=20)


def test_results_that_differ_from_run_to_run_are_not_judged() -> None:
    """A counter that no run resets proves nothing about claims: that is counted, not accused."""
    count = [0]

    @tool(concurrency=INDEPENDENT)
    async def tick(text: str) -> int:
        """Tick."""
        count[0] += 1
        return count[0]

    assert check_tool(tick, examples=10).unclear
    assert not check_tool(tick, examples=10, compare=lambda outcome: outcome.is_error).unclear


def test_a_body_that_takes_what_its_schema_refuses_is_found() -> None:
    """Arguments: what is checked must be what the model is shown."""
    lax = attrs.evolve(text_tool(INDEPENDENT), check_arguments=lambda value: [])
    finding = findings_of(lax, arguments=st.just({}))[0]
    assert finding.rule == "arguments"

    def broken(value: JsonValue) -> list[str]:
        if not isinstance(value, dict):
            raise TypeError("no object")
        return []

    raising = attrs.evolve(text_tool(INDEPENDENT), check_arguments=broken)
    assert any("check_arguments raised" in found.message for found in findings_of(raising, examples=60))


def test_a_check_that_never_reaches_the_body_is_a_finding() -> None:
    """A check that could not try anything must not look like one that passed."""

    @tool(concurrency=PARALLEL)
    async def never(text: str) -> None:
        """Refuse."""
        from quiesce.errors import ToolArgsError  # noqa: PLC0415

        raise ToolArgsError.of(["no"])

    finding = only_finding_of(never, examples=5)
    assert (finding.rule, finding.arguments) == ("arguments", ())


def test_a_schema_that_nothing_fits_is_told() -> None:
    """With the remedy: a strategy of one's own."""
    impossible = define_raw_tool(
        "none", description="d", parameters={"properties": {"a": False}, "required": ["a"]}, execute=body_of()
    )
    with pytest.raises(ValueError, match="give a strategy"):
        check_tool(impossible, examples=5)


@dataclass
class Circle:
    """Round."""

    kind: Literal["circle"]
    size: float


@dataclass
class Trip:
    """Far."""

    kind: Literal["trip"]
    day: date
    costs: dict[str, int]


class Unit(Enum):
    """Some."""

    ONE = 1
    TWO = "two"


def test_whatever_tool_can_describe_can_be_drawn() -> None:
    """Unions, classes, enums, dates, dicts and tuples reach the body."""
    kinds: set[type] = set()

    @tool(concurrency=PARALLEL)
    async def everything(
        shape: Circle | Trip, unit: Unit, pair: tuple[int, str], names: set[str], rest: Any = None, *, run: RunContext
    ) -> None:
        """Take."""
        kinds.add(type(shape))
        kinds.add(type(unit))

    assert check_tool(everything, examples=15, cancel=False).accepted > 15
    assert kinds == {Circle, Trip, Unit}


def test_schemas_of_other_people_can_be_drawn() -> None:
    """References, also to itself, combinations, bounds, patterns and formats."""
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {
            "tree": {"$ref": "#/$defs/tree"},
            "either": {
                "anyOf": [
                    {"type": "string", "minLength": 2, "maxLength": 3},
                    {"type": ["integer", "null"], "minimum": 3, "exclusiveMaximum": 9},
                ]
            },
            "pattern": {"type": "string", "pattern": "^a+$"},
            "all": {"allOf": [{"minItems": 1}, {"type": "array", "items": {"type": "number", "multipleOf": 5}}]},
            "when": {"type": "string", "format": "date-time"},
            "free": {"minProperties": 1, "patternProperties": {"^x": {"type": "number", "minimum": 0, "maximum": 0.5}}},
            "tuple": {"prefixItems": [{"const": 1}, {"enum": ["a", "b"]}], "uniqueItems": True, "minItems": 2},
        },
        "required": ["tree", "all", "free", "tuple"],
        "additionalProperties": {"type": "boolean"},
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
                "required": ["kids"],
            }
        },
    }
    foreign = define_raw_tool("foreign", description="d", parameters=schema, execute=body_of("x"), concurrency=PARALLEL)
    assert check_tool(foreign, examples=10, cancel=False).accepted >= 20


def test_a_tool_in_a_thread_is_checked_too() -> None:
    """A plain function runs in a worker thread, under the virtual clock; what it raises is found."""

    @tool(concurrency=PARALLEL)
    def reverse(text: str) -> str:
        """Reverse."""
        return text[::-1]

    assert check_tool(reverse, examples=8).cancels

    @tool(concurrency=PARALLEL)
    def first(text: str) -> str:
        """First."""
        return text[0]

    finding = only_finding_of(first, examples=8)
    assert (finding.rule, finding.arguments) == ("raises", ({"text": ""},))


def test_the_shipped_read_passes(tmp_path: Path) -> None:
    """Read keeps all rules, for any arguments."""
    (tmp_path / "a").write_text("one\ntwo\n")
    check_tool(read_tool(tmp_path), examples=10)
    names = st.sampled_from(["a", "missing", "."])
    some = st.fixed_dictionaries({"file_path": names}, optional={"offset": st.integers(1, 4)})
    check_tool(read_tool(tmp_path), examples=10, arguments=some, observe=lambda: sorted(tmp_path.iterdir()))


def test_the_shipped_searches_pass(tmp_path: Path) -> None:
    """Glob and grep, with their own search, keep all rules in a folder."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    patterns = st.fixed_dictionaries({"pattern": st.text(max_size=5) | st.sampled_from(["*.txt", "o", "["])})
    check_tool(glob_tool(tmp_path, ripgrep=False), examples=5, arguments=patterns)
    check_tool(grep_tool(tmp_path, ripgrep=False), examples=5, arguments=patterns)


def test_the_kit_can_be_imported_without_hypothesis() -> None:
    """Only check_tool itself needs it, and says what to install."""
    program = """
import sys
sys.modules["hypothesis"] = None
from quiesce.testing import check_tool
from quiesce.testing import MissingExtraError
from quiesce import tool
@tool
async def a(text: str) -> None: "d"
try:
    check_tool(a)
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "check_tool() needs hypothesis: pip install 'quiesce[testing]'"
