"""The four stages of a call, as one object that a batch takes: a test can replace a stage to break it."""

from __future__ import annotations

import attrs

from ..registry import Outcome
from ._around import run_around
from ._body import run_body
from ._cancellation import cancelled_here
from ._execution import Execution
from ._failures import overtaken
from ._finalize import finalize, finish
from ._prepare import prepare

__all__ = ["Pipeline"]


@attrs.frozen
class Pipeline:
    """What happens to one call.

    ``prepare``, ``finalize`` and ``finish`` run one call after another in model order; ``dispatch`` overlaps. Whatever
    hooks and bodies do, a stage returns data; what a stage raises is a fault of quiesce's own.
    """

    async def prepare(self, execution: Execution) -> Outcome | None:
        """Freeze the arguments, then pre hooks, approval and guards; ``None`` if the call may start."""
        return await prepare(execution)

    async def dispatch(self, execution: Execution) -> Outcome:
        """Around hooks and the body, and what a cancel by then makes of a success."""
        hooks = execution.host.registry.around_hooks.seen_by(execution.agent)
        if hooks:
            outcome = await run_around(execution, hooks)
        else:
            outcome = await run_body(execution, own_scope=False)
        execution.post_allowed = execution.minted(outcome) is not False
        if execution.cancel_requested or cancelled_here():
            return overtaken(execution, outcome)
        return outcome

    async def finalize(self, execution: Execution, outcome: Outcome) -> Outcome:
        """Post hooks, then ``finish``."""
        return await finalize(execution, outcome)

    def finish(self, execution: Execution, outcome: Outcome) -> Outcome:
        """The tool's own last word on the content, contexts, and the frozen form."""
        return finish(execution, outcome)
