"""For every test: whatever batches it runs, their traces keep the promises."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quiesce.journal import Event
from quiesce.schedule._driver import Driver
from quiesce.testing import trace_violations


@pytest.fixture(autouse=True)
def traces_keep_the_promises(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Collect what is recorded by any batch, in whatever journal, and check it when the test is over.

    A test whose trace is broken on purpose says so: ``@pytest.mark.broken_trace("why")``.
    """
    events: list[Event] = []
    record = Driver.record

    def recording(driver: Driver, event: Event) -> None:
        record(driver, event)
        events.append(event)

    monkeypatch.setattr(Driver, "record", recording)
    yield
    if request.node.get_closest_marker("broken_trace") is None:
        violations = trace_violations(events)
        assert not violations, "\n".join(found.message for found in violations)
