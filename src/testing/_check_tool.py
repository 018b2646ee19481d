"""``check_tool``: one tool under arguments drawn from its schema, task orders and cancels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import attrs

from ..registry import ToolDefinition
from ._arguments import Case, odd_cases, reach_body, valid_arguments, valid_cases
from ._run import ClockKind, Limits
from ._tool_probe import ToolProbe
from ._tool_rules import Compare, ToolFinding, ToolJudge, whole_outcome

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["ToolCheckError", "ToolReport", "check_tool"]

_MOST_FINDINGS = 12
_SHRINK_CASES = 200
_STUCK_SHRINK_CASES = 30
"""A run that is given up costs a hundred times one that ends."""


@attrs.frozen
class ToolReport:
    """What a check of a tool did, when it found nothing.

    Attributes:
        runs: Runs of the tool.
        accepted: Calls whose arguments the body took.
        refused: Calls that failed with ``INVALID_ARGS``.
        pairs: Pairs of calls that do not conflict, run in both orders and together.
        cancels: Runs that were cancelled.
        unclear: Pairs and repetitions that were not judged, since the same calls gave two results in two equal runs:
            make the tool afresh for each run, or say what of an outcome to compare.
    """

    runs: int
    accepted: int
    refused: int
    pairs: int
    cancels: int
    unclear: int


class ToolCheckError(AssertionError):
    """A tool breaks rules.

    Attributes:
        findings: One for each rule, and for each class of exception, with the smallest arguments found.
    """

    def __init__(self, name: str, findings: Sequence[ToolFinding]) -> None:
        super().__init__("\n".join([f'tool "{name}":', *(f"  {finding}" for finding in findings)]))
        self.findings = tuple(findings)


def check_tool(  # noqa: PLR0913 - options of a check, by keyword
    tool: ToolDefinition | Callable[[], ToolDefinition],
    *,
    examples: int = 50,
    seed: int = 0,
    observe: Callable[[], object] | None = None,
    compare: Compare = whole_outcome,
    allowed: tuple[type[BaseException], ...] = (),
    cancel: bool = True,
    schedules: int = 3,
    arguments: SearchStrategy[Any] | None = None,
    clock: ClockKind = "virtual",
    max_steps: int = 10_000,
    patience: float = 5.0,
) -> ToolReport:
    """Check one tool with many calls; raise what is wrong with it, each with the smallest arguments found.

    The rules: ``outcome`` (one, and true), ``output`` (is valid), ``raises`` (nothing but ``ToolError`` leaves the
    body), ``settles`` (every run ends), ``cancel`` (a cancelled one too), ``arguments`` (the body is not invoked with
    invalid ones), ``classifier`` (does not raise, says the same twice), ``claims`` (two calls that say they do not
    conflict give the same in either order and together; one that reads and writes nothing changes nothing) and
    ``idempotent`` (if it says so, twice is once).

    Each run is a ``trio.run`` of its own: call this from plain functions. The tool does really run, hundreds of times.

    Args:
        tool: The tool, or a function that makes it afresh, called before every run. A tool that keeps state needs the
            second, with fresh state, or its runs cannot be compared.
        examples: Examples with valid arguments, and as many with odd ones.
        seed: The same seed gives the same examples.
        observe: Gives a snapshot of what the tool changes, which equals another when the world is the same. Called
            before and after every run; it is copied deeply. Without it only outcomes are compared.
        compare: What of an outcome two equal runs agree on; leave out times and random names.
        allowed: Exceptions besides ``ToolError`` that the body may raise.
        cancel: Whether to cancel runs.
        schedules: Task orders under which two calls that do not conflict run together.
        arguments: A Hypothesis strategy in place of that made from the schema.
        clock: See ``explore``; ``real`` for tools that wait for processes or sockets with a deadline of their own.
        max_steps: See ``explore``.
        patience: See ``explore``.

    Returns:
        How much was tried.

    Raises:
        ToolCheckError: The tool breaks rules.
        MissingExtraError: The extra ``testing`` is not installed.
        ValueError: No arguments can be drawn from its schema; give ``arguments``.

    Source: ours; docs/testing.md.
    """

    def make() -> ToolDefinition:
        return tool if isinstance(tool, ToolDefinition) else tool()

    definition = make()
    probe = ToolProbe(make, observe, allowed, Limits(clock, max_steps, patience))
    judge = ToolJudge(definition, probe, compare=compare, cancel=cancel, schedules=schedules)
    valid = valid_arguments(definition) if arguments is None else arguments.filter(partial(reach_body, definition))
    findings: dict[tuple[str, str], ToolFinding] = {}
    for cases, judged in (
        (valid_cases(valid, partial(reach_body, definition)), judge.valid),
        (odd_cases(valid), judge.odd),
    ):
        while len(findings) < _MOST_FINDINGS:
            hunt = _Hunt(judged, frozenset(findings))
            found = hunt.go(cases, examples, seed, definition.name)
            if found is None:
                break
            findings[found.rule, found.key] = found
    if not findings and not judge.counts.accepted:
        message = (
            "all arguments that were drawn failed with INVALID_ARGS: give better ones, check_tool(..., arguments=)"
        )
        findings["arguments", ""] = ToolFinding("arguments", message, ())
    if findings:
        raise ToolCheckError(definition.name, list(findings.values()))
    return ToolReport(probe.runs, **attrs.asdict(judge.counts))


class _Found(Exception):  # noqa: N818 - carries a finding through Hypothesis
    pass


class _Hunt:
    """One search of Hypothesis' for the smallest case that shows something not known yet."""

    def __init__(self, judge: Callable[[Case], Iterator[ToolFinding]], known: frozenset[tuple[str, str]]) -> None:
        self._judge = judge
        self._known = known
        self._target: tuple[str, str] | None = None
        self._smallest: ToolFinding | None = None
        self._since = 0

    def go(self, cases: SearchStrategy[Case], examples: int, seed: int, name: str) -> ToolFinding | None:
        """Search; gives the finding, or ``None``.

        Raises:
            ValueError: Nothing can be drawn.
        """
        import hypothesis  # noqa: PLC0415 - an extra; whoever made the strategy had it
        from hypothesis.errors import HypothesisException  # noqa: PLC0415

        settings = hypothesis.settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
            report_multiple_bugs=False,
            suppress_health_check=tuple(cast("Iterable[hypothesis.HealthCheck]", hypothesis.HealthCheck)),
            verbosity=hypothesis.Verbosity.quiet,
        )
        search = cast("Callable[[], None]", hypothesis.seed(seed)(settings(hypothesis.given(cases)(self._look))))
        try:
            search()
        except _Found:
            pass
        except HypothesisException as error:
            # One that does not fail again (threads, chance) is a finding all the same.
            if self._smallest is None:
                msg = (
                    f'no arguments can be drawn from the parameters of tool "{name}" '
                    f"({type(error).__name__}: {error}); give a strategy: check_tool(..., "
                    f"arguments=st.fixed_dictionaries(...))"
                )
                raise ValueError(msg) from error
        return self._smallest

    def _look(self, case: Case) -> None:
        if self._target is not None:
            self._since += 1
            stuck = self._target[0] in ("settles", "cancel")
            if self._since > (_STUCK_SHRINK_CASES if stuck else _SHRINK_CASES):
                return
        for finding in self._judge(case):
            key = (finding.rule, finding.key)
            # While it shrinks, only the same thing counts: else the smallest case shows something else.
            if key in self._known or (self._target is not None and key != self._target):
                continue
            self._target, self._smallest = key, finding
            raise _Found
