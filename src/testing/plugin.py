"""The pytest plugin: run a test under many task orders, each as a test of its own with fixtures of its own.

``@pytest.mark.schedules(n)`` turns a test into ``n``, each under another order of tasks; so async fixtures work, and
pytest-xdist may spread them. A failing one says how to run it again. An async test is run by pytest-trio if that is
there and the test is one of its own, else here, on a virtual clock.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import itertools
import re
from collections.abc import Callable, Generator
from typing import Any

import attrs
import trio
import trio.testing

from ._choices import Granularity, Schedule
from ._control import controlled_order, without_complaints
from ._errors import MissingExtraError
from ._leftovers import watch_leftovers
from ._replay import Tape, other_trio
from ._run import stopped_by
from ._strategies import Exhaustive, Pct, Picker, RandomOrder, Strategy
from ._turns import Turns

try:
    import pytest
except ImportError as error:
    raise MissingExtraError("quiesce.testing.plugin", "pytest") from error

__all__: list[str] = []

_ORDER: pytest.StashKey[Turns] = pytest.StashKey()
_MARK = (
    "schedules(n=20, *, strategy='random', seed=0, max_steps=1_000_000): run the test n times, each time under another "
    "order of its trio tasks; strategy is 'random', or a RandomOrder or Pct(steps=...) of quiesce.testing"
)


@attrs.frozen
class _Order:
    """How one test is to be ordered.

    Attributes:
        make: Makes what makes its choices; anew for each test, for parametrized ones share this.
        granularity: See ``Schedule``.
        max_steps: Most steps of the test.
    """

    make: Callable[[], Picker]
    granularity: Granularity
    max_steps: int


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the command line options."""
    group = parser.getgroup("quiesce", "task orders (quiesce.testing)")
    group.addoption("--schedules", type=int, metavar="N", help="run each test marked `schedules` N times")
    group.addoption("--schedule-seed", type=int, metavar="SEED", help="seed of the orders, instead of the mark's")
    group.addoption(
        "--schedule-replay",
        type=_replay_string,
        metavar="STRING",
        help="run each marked test once, under it",
    )


def _replay_string(text: str) -> Schedule:
    try:
        return Schedule.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", _MARK)
    replayed: Schedule | None = config.getoption("--schedule-replay")
    misfit = None if replayed is None else other_trio(replayed)
    if misfit is not None:
        config.issue_config_time_warning(misfit, stacklevel=2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say of marked tests that they cannot be run under orders."""
    for item in items:
        if item.get_closest_marker("schedules") is not None and not hasattr(item, "callspec"):
            item.warn(pytest.PytestWarning(f"{item.nodeid}: the mark `schedules` has no effect on this kind of test"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test for each order."""
    mark = metafunc.definition.get_closest_marker("schedules")
    if mark is None:
        return
    try:
        orders = _orders(metafunc.config, *mark.args, **mark.kwargs)
    except (TypeError, ValueError) as wrong:
        msg = f"{metafunc.definition.nodeid}: wrong mark `schedules`: {wrong}; it is {_MARK}"
        raise pytest.UsageError(msg) from wrong
    metafunc.parametrize("task_order", list(orders.values()), ids=list(orders), indirect=True)


def _orders(
    config: pytest.Config,
    n: int = 20,
    *,
    strategy: str | Strategy = "random",
    seed: int = 0,
    max_steps: int = 1_000_000,
) -> dict[str, _Order]:
    """The orders of one test by their name."""
    replayed: Schedule | None = config.getoption("--schedule-replay")
    if replayed is not None:
        return {"replay": _Order(lambda: Tape(replayed.choices), replayed.granularity, max_steps)}
    given: int | None = config.getoption("--schedules")
    count = n if given is None else given
    if count < 1:
        msg = f"n must be at least 1, got {count!r}"
        raise ValueError(msg)
    given_seed: int | None = config.getoption("--schedule-seed")
    if strategy == "random":
        strategy = RandomOrder(seed)
    if isinstance(strategy, RandomOrder | Pct) and given_seed is not None:
        strategy = attrs.evolve(strategy, seed=given_seed)
    if isinstance(strategy, str | Exhaustive) or (isinstance(strategy, Pct) and strategy.steps is None):
        msg = f"strategy cannot be {strategy!r}: each order is a test that may run elsewhere, without the one before"
        raise ValueError(msg)
    chosen = strategy

    def order(place: int) -> _Order:
        return _Order(lambda: next(itertools.islice(chosen.pickers(), place, None)), chosen.granularity, max_steps)

    return {f"order{place}": order(place) for place in range(count)}


@pytest.fixture(autouse=True)  # what is parametrized must be a fixture of the test; without the mark it does nothing
def task_order(request: pytest.FixtureRequest) -> Generator[None]:
    """Holds the order of tasks of a test marked ``schedules``, from before its other fixtures until after them."""
    order: _Order | None = getattr(request, "param", None)
    if order is None:
        yield
        return
    turns = Turns(order.make(), order.granularity, max_steps=order.max_steps, patience=5.0)
    request.node.stash[_ORDER] = turns
    try:
        with controlled_order(turns):
            yield
    finally:
        turns.close()


@pytest.fixture
def virtual_clock() -> trio.testing.MockClock:
    """A mock clock that jumps to the next deadline when all tasks wait. pytest-trio takes it for the test's clock."""
    return trio.testing.MockClock(autojump_threshold=0)


@pytest.fixture
def no_leftovers(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Fail the test if it leaves a thread at work, a child process, a descriptor, a temporary file or a held lock."""
    tmp_path_factory.getbasetemp()  # pytest's own folder is nothing of the test's
    with watch_leftovers() as leftovers:
        yield
    kept = str(tmp_path_factory.getbasetemp())
    leftovers.found = tuple(left for left in leftovers.found if not (left.kind == "file" and kept in left.what))
    leftovers.check()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object:
    """Run a marked async test that no other plugin has made its own."""
    if _ORDER not in pyfuncitem.stash or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in names if name in pyfuncitem.funcargs}
    clocks = [value for value in arguments.values() if isinstance(value, trio.abc.Clock)]
    clock = clocks[0] if clocks else trio.testing.MockClock(autojump_threshold=0)
    trio.run(functools.partial(pyfuncitem.obj, **arguments), clock=clock)
    return True


@pytest.hookimpl(wrapper=True, specname="pytest_pyfunc_call")
def pytest_name_the_finding(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Raise what ended the run, where trio would have called it an error of its own."""
    turns = pyfuncitem.stash.get(_ORDER, None)
    crash: BaseException | None = None
    try:
        return (yield)
    except BaseException as raised:  # noqa: ASYNC103 - the run is over
        if turns is None or turns.stopped is None:
            raise
        crash = raised
    with without_complaints():
        del crash
    raise stopped_by(turns)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say how a failing test can be run again."""
    report = yield
    turns = item.stash.get(_ORDER, None)
    if report.failed and turns is not None:
        schedule = Schedule(tuple(turns.choices), turns.granularity, trio.__version__)
        test = re.sub(r"(?<=[\[-])order\d+(?=[\]-])", "replay", item.nodeid)
        lines = [f'pytest "{test}" --schedule-replay={schedule}', *turns.deviations()[:20]]
        report.sections.append(("order of tasks", "\n".join(lines)))
    return report
