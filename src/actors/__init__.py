"""Who does the work: the call actor, the stages of a call, and what it knows while it runs."""

from ._actor import run_call
from ._cancellation import CallerCancel, cancelled_here
from ._execution import Execution, Identity
from ._failures import abort, first_interrupt, only_cancelled
from ._host import Host, SubCalls
from ._pending import Pending, pending_of
from ._pipeline import Pipeline
from ._views import View

__all__ = [
    "CallerCancel",
    "Execution",
    "Host",
    "Identity",
    "Pending",
    "Pipeline",
    "SubCalls",
    "View",
    "abort",
    "cancelled_here",
    "first_interrupt",
    "only_cancelled",
    "pending_of",
    "run_call",
]
