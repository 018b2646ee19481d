"""The lane, step by step, where a random history seldom leads."""

from __future__ import annotations

from quiesce import ANY, EXCLUSIVE, INDEPENDENT, PARALLEL, Claims
from quiesce.schedule import CallPhase, Decision, Do, Lane, Verdict


def lane_of(*claims: Claims, max_parallel: int = 10, limit: int | None = None) -> Lane:
    """A closed lane with a call of one tool for each of these claims."""
    limits = None if limit is None else {"tool": limit}
    lane = Lane(lambda index: claims[index], max_parallel=max_parallel, limits=limits)
    for _ in claims:
        lane.submit("tool")
    lane.close()
    return lane


def start(lane: Lane, index: int) -> None:
    """The next thing to do is to prepare this call, and it starts at once."""
    assert lane.next() == Decision(Do.PREPARE, index)
    assert lane.prepared(index, dispatched=True) is Verdict.START


def test_claims_on_anything_are_held_until_commit() -> None:
    """A settled reader of anything that waits for its commit still keeps a writer of a key out."""
    lane = lane_of(INDEPENDENT, PARALLEL, Claims(writes={"k"}))
    start(lane, 0)
    start(lane, 1)
    lane.settled(1)
    assert lane.next() == Decision(Do.WAIT), "call 1 waits for the commit of call 0, and holds its claims"
    lane.settled(0)
    for index in (0, 1):
        assert lane.next() == Decision(Do.COMMIT, index)
        lane.committed(index)
    start(lane, 2)


def test_a_due_commit_comes_before_any_start() -> None:
    """A place is free and a call waits for it, but what has settled is recorded first."""
    lane = lane_of(INDEPENDENT, INDEPENDENT, max_parallel=1)
    start(lane, 0)
    assert lane.next() == Decision(Do.WAIT)
    lane.settled(0)
    assert lane.next() == Decision(Do.COMMIT, 0)
    lane.committed(0)
    start(lane, 1)


def test_keyed_claims_are_held_until_dispatch_settles() -> None:
    """A settled writer of a key that waits for its commit lets the next one in."""
    lane = lane_of(INDEPENDENT, Claims(writes={"k"}), Claims(writes={"k"}))
    start(lane, 0)
    start(lane, 1)
    assert lane.next() == Decision(Do.PREPARE, 2)
    assert lane.prepared(2, dispatched=True) is Verdict.HOLD
    assert lane.next() == Decision(Do.WAIT)
    lane.settled(1)
    assert lane.next() == Decision(Do.START, 2)


def test_a_call_beyond_its_tools_limit_waits_without_a_place() -> None:
    """It is prepared in its turn, and starts when another call of the tool has settled."""
    lane = lane_of(INDEPENDENT, INDEPENDENT, limit=1)
    start(lane, 0)
    assert lane.next() == Decision(Do.PREPARE, 1)
    assert lane.prepared(1, dispatched=True) is Verdict.HOLD
    assert lane.next() == Decision(Do.WAIT)
    lane.settled(0)
    assert lane.next() == Decision(Do.COMMIT, 0)
    lane.committed(0)
    assert lane.next() == Decision(Do.START, 1)


def test_a_cancel_settles_what_waits_as_ready() -> None:
    """It never starts; it is committed in its turn."""
    writer = Claims(writes={"k"})
    lane = lane_of(writer, writer)
    start(lane, 0)
    assert lane.next() == Decision(Do.PREPARE, 1)
    assert lane.prepared(1, dispatched=True) is Verdict.HOLD
    lane.cancel()
    assert lane.phase(1) is CallPhase.SETTLED
    assert lane.next() == Decision(Do.WAIT)
    lane.settled(0)
    for index in (0, 1):
        assert lane.next() == Decision(Do.COMMIT, index)
        lane.committed(index)
    assert lane.next() == Decision(Do.DONE)


def test_a_writer_of_a_key_waits_for_all_its_readers() -> None:
    """Two readers run side by side; the writer after them starts when both have settled."""
    reader = Claims(reads={"k"})
    lane = lane_of(reader, reader, Claims(writes={"k"}))
    start(lane, 0)
    start(lane, 1)
    assert lane.next() == Decision(Do.PREPARE, 2)
    assert lane.prepared(2, dispatched=True) is Verdict.HOLD
    lane.settled(1)
    assert lane.next() == Decision(Do.WAIT)
    lane.settled(0)
    assert lane.next() == Decision(Do.COMMIT, 0)
    lane.committed(0)
    assert lane.next() == Decision(Do.COMMIT, 1)
    lane.committed(1)
    assert lane.next() == Decision(Do.START, 2)


def test_a_reader_of_a_key_waits_for_a_barrier_that_writes_it() -> None:
    """Call 0 reads anything and writes a key: the pair is not keyed on both sides, so nothing is prepared beside it."""
    lane = lane_of(Claims(reads=ANY, writes={"k"}), Claims(reads={"k"}), INDEPENDENT)
    start(lane, 0)
    assert lane.next() == Decision(Do.WAIT)
    lane.settled(0)
    assert lane.next() == Decision(Do.COMMIT, 0)
    lane.committed(0)
    start(lane, 1)


def test_a_withdrawn_ready_call_does_not_let_its_successor_past_its_predecessor() -> None:
    """Three writers of one key: the second is cancelled while it waits; the third still waits for the first."""
    writer = Claims(writes={"k"})
    lane = lane_of(writer, writer, writer)
    start(lane, 0)
    for index in (1, 2):
        assert lane.next() == Decision(Do.PREPARE, index)
        assert lane.prepared(index, dispatched=True) is Verdict.HOLD
    assert lane.cancel_call(1)
    assert lane.next() == Decision(Do.WAIT)
    lane.settled(0)
    assert lane.next() == Decision(Do.COMMIT, 0)


def test_an_exclusive_call_runs_alone_through_its_commit() -> None:
    """Nothing is prepared beside it, nor before its post hooks have ended."""
    lane = lane_of(EXCLUSIVE, INDEPENDENT)
    start(lane, 0)
    assert lane.next() == Decision(Do.WAIT)
    lane.settled(0)
    assert lane.next() == Decision(Do.COMMIT, 0)
    lane.committed(0)
    start(lane, 1)
