"""The rules that a tool is checked by: from a case and a probe to what is wrong. Knows nothing of Hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias, cast

import attrs

from ..errors import RegistrationError
from ..registry import (
    Arguments,
    Claims,
    Effect,
    JsonValue,
    Outcome,
    Success,
    ToolDefinition,
    classify,
    compile_raw_validator,
    freeze,
    is_json,
    thaw,
)
from ..schedule import conflicts
from ._arguments import Case
from ._errors import Deadlock, TooManySteps
from ._strategies import RandomOrder
from ._tool_probe import Seen, ToolProbe

__all__ = ["Compare", "Counts", "Rule", "ToolFinding", "ToolJudge", "whole_outcome"]

Rule: TypeAlias = Literal[
    "arguments", "cancel", "claims", "classifier", "idempotent", "outcome", "output", "raises", "settles"
]
Compare: TypeAlias = Callable[[Outcome], object]


@attrs.frozen
class ToolFinding:
    """Something that is wrong with a tool.

    Attributes:
        rule: The rule that it breaks; ``docs/testing.md`` lists them.
        message: What happened.
        arguments: The smallest arguments found that show it: one a call, in order.
    """

    rule: Rule
    message: str
    arguments: tuple[JsonValue, ...]
    # What makes two findings the same besides the rule: one exception class must not hide another.
    key: str = attrs.field(default="", eq=False, repr=False)

    def __str__(self) -> str:
        shown = ", ".join(_shown(each) for each in self.arguments)
        return f"{self.rule}: {self.message}\n    with {shown}"


def _shown(arguments: JsonValue) -> str:
    try:
        text = repr(arguments)
    except RecursionError:
        return "arguments that are nested too deeply to be shown"
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"  # noqa: PLR2004 - a line or two


@attrs.define
class Counts:
    """What was tried.

    Attributes:
        accepted: Calls with arguments that the body took.
        refused: Calls that failed with ``INVALID_ARGS``.
        pairs: Pairs of calls that do not conflict, run in both orders and together.
        cancels: Runs that were cancelled.
        unclear: Pairs and repetitions that could not be judged, since the same run twice gives two results.
    """

    accepted: int = 0
    refused: int = 0
    pairs: int = 0
    cancels: int = 0
    unclear: int = 0


def whole_outcome(outcome: Outcome) -> object:
    """What two runs of a call must agree on: value, content, contexts and error."""
    if isinstance(outcome, Success):
        return "success", outcome.value, outcome.content, outcome.contexts
    return "failure", outcome.error, outcome.content, outcome.contexts


_REPETITIONS = 8


class ToolJudge:
    """Judges cases.

    Attributes:
        counts: What was tried so far.
    """

    def __init__(
        self,
        definition: ToolDefinition,
        probe: ToolProbe,
        *,
        compare: Compare = whole_outcome,
        cancel: bool = True,
        schedules: int = 3,
    ) -> None:
        self.counts = Counts()
        self._definition = definition
        self._probe = probe
        self._compare = compare
        self._cancel = cancel
        self._schedules = schedules
        self._stopped = False
        try:
            self._shown_check: Callable[[JsonValue], list[str]] = compile_raw_validator(definition.parameters)
        except RegistrationError:
            # Nested too deeply for jsonschema: then there is no second opinion.
            self._shown_check = definition.check_arguments

    def accepts(self, arguments: JsonValue) -> bool:
        """Whether the tool's own check accepts the arguments."""
        return is_json(arguments) and not self._definition.check_arguments(arguments)

    def odd(self, case: Case) -> Iterator[ToolFinding]:
        """What is wrong with one call whose arguments may be anything."""
        try:
            accepted = self.accepts(case.first)
        except Exception as error:  # noqa: BLE001 - the check is the tool's
            found = _finding("arguments", f"check_arguments raised {_named(error)}", case.first)
            yield attrs.evolve(found, key="check")
            return
        if accepted:
            yield from self._alone(case.first)
            return
        seen = self._probe.run(case.first)
        self.counts.refused += 1
        yield from self._general(seen, "settles", case.first)
        if seen.invoked:
            yield _finding("arguments", "the body was invoked with arguments that break the schema", case.first)
        elif is_json(case.first) and seen.outcomes[0] is not None and seen.outcomes[0].code != "INVALID_ARGS":
            yield _finding(
                "arguments", f"invalid arguments failed with {seen.outcomes[0].code!r}, not INVALID_ARGS", case.first
            )

    def valid(self, case: Case) -> Iterator[ToolFinding]:
        """What is wrong with two calls whose arguments are valid: each alone, cancelled, repeated, and together."""
        self._stopped = False
        yield from self._alone(case.first)
        # Also alone, so that what is wrong with it is shown without the other.
        yield from self._alone(case.second)
        if self._stopped:
            return  # runs that are given up tell no more, and cost much
        if self._cancel:
            yield from self._cancelled(case)
        if self._definition.idempotent:
            yield from self._twice(case.first)
        yield from self._together(case)

    def _alone(self, arguments: JsonValue) -> Iterator[ToolFinding]:
        yield from _classifier(self._definition, arguments)
        claimed = classify(self._definition, arguments)
        seen = self._probe.run(arguments)
        outcome = seen.outcomes[0] if seen.outcomes else None
        refused = outcome is not None and outcome.code == "INVALID_ARGS"
        self.counts.refused += refused
        self.counts.accepted += not refused
        yield from self._general(seen, "settles", arguments)
        if seen.invoked and self._shown_check(arguments):
            message = "the body was invoked with arguments that break the schema which the model is shown"
            yield _finding("arguments", message, arguments)
        claims = classify(seen.definition, arguments)
        if claims != claimed:
            yield _finding("classifier", "another class after the call than before it", arguments)
        if claims.reads and not claims.writes and seen.before != seen.after:
            yield _finding("claims", f"says that it writes nothing ({claims}), but what is observed changed", arguments)

    def _cancelled(self, case: Case) -> Iterator[ToolFinding]:
        if not case.moments:
            return
        steps = self._probe.run(case.first).steps
        for moment in case.moments:
            step = 1 + moment * steps // 100
            self.counts.cancels += 1
            seen = self._probe.run(case.first, cancel_after=step)
            for found in self._general(seen, "cancel", case.first):
                yield attrs.evolve(found, message=f"cancelled after step {step} of {steps}: {found.message}")

    def _twice(self, arguments: JsonValue) -> Iterator[ToolFinding]:
        once, twice = self._probe.run(arguments), self._probe.run(arguments, arguments, max_parallel=1)
        if once.error is not None or twice.error is not None:
            yield from self._general(twice, "settles", arguments, arguments)
            return
        first, second = self._results(once), self._results(twice)
        if [*first, *first] == second and once.after == twice.after:
            return
        if self._results(self._probe.run(arguments)) != first:
            self.counts.unclear += 1
            return
        what = "the result of the second call is another" if [*first, *first] != second else "the state is another"
        yield _finding("idempotent", f"declared idempotent, but {what} than after one call", arguments)

    def _together(self, case: Case) -> Iterator[ToolFinding]:
        pair = (case.first, case.second)
        pickers = RandomOrder(case.seed).pickers()
        if conflicts(*(classify(self._definition, each) for each in pair)):
            yield from self._general(self._probe.run(*pair, picker=next(pickers)), "settles", *pair)
            return
        self.counts.pairs += 1
        plain = self._probe.run(*pair, max_parallel=1)
        yield from self._general(plain, "settles", *pair)
        turned = self._probe.run(*reversed(pair), max_parallel=1)
        yield from self._general(turned, "settles", *reversed(pair))
        if any(seen.error is not None or seen.escaped for seen in (plain, turned)):
            return  # found already; and what leaves a body may end the other call too
        wanted = self._results(plain)
        if list(reversed(self._results(turned))) != wanted or turned.after != plain.after:
            yield from self._dishonest(plain, "one after the other, they give another result in the other order", pair)
        for _ in range(self._schedules):
            seen = self._probe.run(*pair, picker=next(pickers))
            yield from self._general(seen, "settles", *pair)
            if seen.error is None and not seen.escaped and (self._results(seen) != wanted or seen.after != plain.after):
                yield from self._dishonest(plain, "together they give another result than one after the other", pair)
                return

    def _dishonest(self, plain: Seen, how: str, pair: tuple[JsonValue, JsonValue]) -> Iterator[ToolFinding]:
        # A tool whose results are random says nothing of its claims; a few runs show that it is.
        for _ in range(_REPETITIONS):
            again = self._probe.run(*pair, max_parallel=1)
            if self._results(again) != self._results(plain) or again.after != plain.after:
                self.counts.unclear += 1
                return
        one, other = (_claims_text(classify(self._definition, each)) for each in pair)
        yield _finding("claims", f"these two say that they do not conflict ({one}; {other}), but {how}", *pair)

    def _results(self, seen: Seen) -> list[object]:
        return [None if outcome is None else self._compare(outcome) for outcome in seen.outcomes]

    def _general(self, seen: Seen, rule: Rule, *arguments: JsonValue) -> Iterator[ToolFinding]:
        """What holds of every run."""
        if seen.error is not None:
            self._stopped = True
            stuck = isinstance(seen.error, Deadlock | TooManySteps)
            yield _finding(rule if stuck else "outcome", f"the run raised {_named(seen.error)}", *arguments)
            return
        for name, text in seen.escaped:
            message = f"{name} left the body: {text}. Raise a ToolError for what the model may know, or allow it"
            yield attrs.evolve(_finding("raises", message, *arguments), key=name)
        for outcome in seen.outcomes:
            if outcome is None:
                yield _finding("outcome", "a call has no outcome", *arguments)
            elif outcome.code == "INVALID_TOOL_OUTPUT":
                yield _finding("output", outcome.text, *arguments)
        if len(arguments) == 1 and len(seen.outcomes) == 1 and seen.outcomes[0] is not None:
            problem = _untruth(seen.outcomes[0], seen.invoked)
            if problem is not None:
                yield _finding("outcome", problem, *arguments)


def _untruth(outcome: Outcome, invoked: int) -> str | None:
    if (outcome.effect is Effect.NOT_STARTED) == bool(invoked):
        return f"the effect is {outcome.effect.value!r} though the body was invoked {invoked} times"
    if outcome.code == ("ABORTED_BEFORE_DISPATCH" if invoked else "ABORTED"):
        return f"the code is {outcome.code} though the body was invoked {invoked} times"
    return None


def _classifier(definition: ToolDefinition, arguments: JsonValue) -> Iterator[ToolFinding]:
    declared = definition.concurrency
    if not callable(declared):
        return
    answers: list[object] = []
    for _ in range(2):
        try:
            answers.append(declared(cast("Arguments", freeze(thaw(arguments)))))
        except Exception as error:  # noqa: BLE001 - the classifier is the tool's
            message = f"the classifier raised {_named(error)}: the call runs alone"
            yield attrs.evolve(_finding("classifier", message, arguments), key=type(error).__name__)
            return
    if answers[0] != answers[1]:
        yield _finding("classifier", f"two answers for the same arguments: {answers[0]!r}, {answers[1]!r}", arguments)
    elif not isinstance(answers[0], Claims | bool):
        message = f"the classifier returned {answers[0]!r:.80}, neither a bool nor Claims: the call runs alone"
        yield _finding("classifier", message, arguments)


def _finding(rule: Rule, message: str, *arguments: JsonValue) -> ToolFinding:
    return ToolFinding(rule, message, tuple(thaw(each) if is_json(each) else each for each in arguments))


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error!s:.300}"


def _claims_text(claims: Any) -> str:
    return f"{claims!r:.120}"
