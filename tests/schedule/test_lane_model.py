"""The lane agrees with a model that is too simple to be wrong, on random histories."""

from __future__ import annotations

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from quiesce import ANY, EXCLUSIVE, INDEPENDENT, PARALLEL, Claims
from quiesce.schedule import CallPhase, Decision, Do, Lane, Verdict, conflicts

P = CallPhase
WAIT, DONE = Decision(Do.WAIT), Decision(Do.DONE)

keys = st.frozensets(st.sampled_from("abc"), max_size=2)
claims = st.one_of(
    st.sampled_from([PARALLEL, EXCLUSIVE, INDEPENDENT]),
    st.builds(Claims, reads=keys, writes=keys),
    st.builds(Claims, reads=st.just(ANY), writes=keys),
)
tools = st.sampled_from(["free", "one", "two"])
LIMITS = {"one": 1, "two": 2}


@attrs.define
class Model:
    """The rules of the design, read off the full list of calls at every step."""

    max_parallel: int
    phases: list[CallPhase] = attrs.field(factory=list[CallPhase])
    tools: list[str] = attrs.field(factory=list[str])
    live: list[Claims] = attrs.field(factory=list[Claims])
    held: dict[int, Claims] = attrs.field(factory=dict[int, Claims])
    planned: set[int] = attrs.field(factory=set[int])
    withdrawn: set[int] = attrs.field(factory=set[int])
    closed: bool = False
    stopped: bool = False
    faulted: bool = False

    def indices(self, *phases: CallPhase) -> list[int]:
        return [index for index, phase in enumerate(self.phases) if phase in phases]

    def holders(self) -> dict[int, Claims]:
        until_commit = {i for i, c in self.held.items() if c.reads is ANY or c.writes is ANY}
        return {
            index: claim
            for index, claim in self.held.items()
            if self.phases[index] in (P.PREPARING, P.READY, P.RUNNING)
            or (index in until_commit and self.phases[index] in (P.SETTLED, P.COMMITTING))
        }

    def pool(self, tool: str | None = None) -> int:
        inside = self.indices(P.RUNNING) + [i for i in self.indices(P.PREPARING) if i in self.planned]
        return sum(tool is None or self.tools[index] == tool for index in inside)

    def limit_full(self, tool: str) -> bool:
        return tool in LIMITS and self.pool(tool) >= LIMITS[tool]

    def next(self) -> Decision:
        if self.faulted:
            return WAIT if self.indices(P.RUNNING) else DONE
        for index in self.indices(P.QUEUED):
            if not self.stopped and index not in self.withdrawn:
                break
            self.phases[index] = P.ABANDONED
        uncommitted = [i for i, phase in enumerate(self.phases) if phase is not P.COMMITTED]
        if uncommitted and self.phases[uncommitted[0]] in (P.SETTLED, P.ABANDONED):
            first = uncommitted[0]
            do = Do.COMMIT if self.phases[first] is P.SETTLED else Do.ABANDON
            self.phases[first] = P.COMMITTING
            return Decision(do, first)
        if not self.stopped and (start := self.start()) is not None:
            return start
        return DONE if (self.closed or self.stopped) and not uncommitted else WAIT

    def start(self) -> Decision | None:
        pool_full = self.pool() >= self.max_parallel
        holders = self.holders()
        for index in self.indices(P.READY):
            earlier = [claim for other, claim in holders.items() if other < index]
            blocked = any(conflicts(self.held[index], claim) for claim in earlier)
            if not blocked and not pool_full and not self.limit_full(self.tools[index]):
                self.phases[index] = P.RUNNING
                return Decision(Do.START, index)
        queued = self.indices(P.QUEUED)
        if not queued:
            return None
        index = queued[0]
        mine, limit_full = self.live[index], self.limit_full(self.tools[index])
        rivals = [claim for claim in holders.values() if conflicts(mine, claim)]
        keyed = all(ANY not in (c.reads, c.writes) for c in [mine, *rivals])
        if not rivals and not pool_full and not limit_full:
            self.planned.add(index)
        elif (
            not ((rivals and keyed) or (not rivals and limit_full and not pool_full))
            or len(self.indices(P.READY)) >= self.max_parallel
        ):
            return None
        self.phases[index] = P.PREPARING
        self.held[index] = mine
        return Decision(Do.PREPARE, index)

    def prepared(self, index: int, *, dispatched: bool) -> Verdict | None:
        planned = index in self.planned
        self.planned.discard(index)
        if self.faulted and dispatched:
            return Verdict.DROP
        if not dispatched or self.stopped or index in self.withdrawn:
            self.phases[index] = P.SETTLED
            return Verdict.ABORT if dispatched else None
        self.phases[index] = P.RUNNING if planned else P.READY
        return Verdict.START if planned else Verdict.HOLD

    def cancel(self) -> None:
        self.stopped = True
        for index in self.indices(P.READY):
            self.phases[index] = P.SETTLED

    def cancel_call(self, index: int) -> bool:
        phase = self.phases[index]
        if phase is P.READY:
            self.phases[index] = P.SETTLED
        self.withdrawn.add(index)
        return phase in (P.QUEUED, P.PREPARING, P.READY, P.RUNNING)


class LaneAgainstModel(RuleBasedStateMachine):
    """Drives both with the same history; every answer and every state must be the same."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model(2)
        self.lane = Lane(lambda index: self.model.live[index], max_parallel=2, limits=LIMITS)
        self.doing: Decision | None = None

    @rule(tool=tools, claim=claims)
    @precondition(lambda self: not self.model.closed)
    def submit(self, tool: str, claim: Claims) -> None:
        assert self.lane.submit(tool) == len(self.model.phases)
        self.model.phases.append(P.QUEUED)
        self.model.tools.append(tool)
        self.model.live.append(claim)

    @rule()
    def close(self) -> None:
        self.lane.close()
        self.model.closed = True

    @rule()
    @precondition(lambda self: self.doing is None)
    def advance(self) -> None:
        decision = self.lane.next()
        assert decision == self.model.next()
        if decision.do in (Do.PREPARE, Do.COMMIT, Do.ABANDON):
            self.doing = decision

    @rule(dispatched=st.sampled_from([True, True, True, False]))
    @precondition(lambda self: self.doing is not None)
    def finish(self, dispatched: bool) -> None:
        assert self.doing is not None
        do, index = self.doing
        self.doing = None
        if do is Do.PREPARE:
            verdict = self.lane.prepared(index, dispatched=dispatched)
            assert verdict == self.model.prepared(index, dispatched=dispatched)
        else:
            self.lane.committed(index)
            self.model.phases[index] = P.COMMITTED

    @rule(data=st.data())
    @precondition(lambda self: self.model.indices(P.RUNNING))
    def settle(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from(self.model.indices(P.RUNNING)))
        self.lane.settled(index)
        self.model.phases[index] = P.SETTLED

    @rule(data=st.data(), claim=claims)
    @precondition(lambda self: self.model.indices(P.QUEUED))
    def reclassify(self, data: st.DataObject, claim: Claims) -> None:
        self.model.live[data.draw(st.sampled_from(self.model.indices(P.QUEUED)))] = claim

    @rule(data=st.data())
    @precondition(lambda self: self.model.phases)
    def cancel_call(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from(range(len(self.model.phases))))
        assert self.lane.cancel_call(index) == self.model.cancel_call(index)

    @rule(really=st.integers(0, 9))
    def cancel(self, really: int) -> None:
        if really == 0 and not self.model.faulted:
            self.lane.cancel()
            self.model.cancel()

    @rule(really=st.integers(0, 19))
    def fault(self, really: int) -> None:
        if really == 0:
            self.lane.fault()
            self.model.faulted = self.model.stopped = True

    @invariant()
    def same_states(self) -> None:
        assert [self.lane.phase(index) for index in range(len(self.lane))] == self.model.phases

    @invariant()
    def conflicting_calls_never_run_together(self) -> None:
        running = self.model.indices(P.RUNNING)
        assert not any(
            conflicts(self.model.held[one], self.model.held[other])
            for one in running
            for other in running
            if one < other
        )


TestLaneAgainstModel = LaneAgainstModel.TestCase
TestLaneAgainstModel.settings = settings(max_examples=300, stateful_step_count=60, deadline=None)
