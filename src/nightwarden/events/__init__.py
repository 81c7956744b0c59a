"""What a run says: one append-only sequence; everything else is read from it.

One file a family; `codec.py` turns events into lines, `render.py` into words.

Read next: `base.py`.
"""

from nightwarden.events.base import FORMAT, Event
from nightwarden.events.budget import Booking, BudgetCommitted, BudgetReserved, BudgetState
from nightwarden.events.codec import decode_lines, encode
from nightwarden.events.invocation import (
    AssetWritten,
    ControlSent,
    InvocationFailed,
    InvocationPruned,
    InvocationSpent,
    InvocationStarted,
    InvocationSucceeded,
    InvocationSuspended,
    ItemEmitted,
    StreamClosed,
)
from nightwarden.events.node import (
    Log,
    NodeFinished,
    NodeProgress,
    NodeStarted,
    RecordRejected,
    WindowWidened,
)
from nightwarden.events.run import (
    InputClosed,
    InputPushed,
    RunCancelled,
    RunCompleted,
    RunEnded,
    RunFailed,
    RunResumed,
    RunStarted,
    RunStopping,
    RunSuspended,
)
from nightwarden.events.steering import (
    SteeringArmed,
    SteeringDeferred,
    SteeringDone,
    SteeringEvaluated,
    SteeringExhausted,
    SteeringParked,
    SteeringWoken,
    UserMessageCancelled,
    UserMessageConsumed,
    UserMessageDelivered,
    UserMessageExpired,
    UserMessageQueued,
)
from nightwarden.events.supervision import (
    SupervisorDeciding,
    SupervisorDecision,
    SupervisorEscalation,
    SupervisorOutcome,
)

__all__ = [
    "FORMAT",
    "AssetWritten",
    "Booking",
    "BudgetCommitted",
    "BudgetReserved",
    "BudgetState",
    "ControlSent",
    "Event",
    "InputClosed",
    "InputPushed",
    "InvocationFailed",
    "InvocationPruned",
    "InvocationSpent",
    "InvocationStarted",
    "InvocationSucceeded",
    "InvocationSuspended",
    "ItemEmitted",
    "Log",
    "NodeFinished",
    "NodeProgress",
    "NodeStarted",
    "RecordRejected",
    "RunCancelled",
    "RunCompleted",
    "RunEnded",
    "RunFailed",
    "RunResumed",
    "RunStarted",
    "RunStopping",
    "RunSuspended",
    "SteeringArmed",
    "SteeringDeferred",
    "SteeringDone",
    "SteeringEvaluated",
    "SteeringExhausted",
    "SteeringParked",
    "SteeringWoken",
    "StreamClosed",
    "SupervisorDeciding",
    "SupervisorDecision",
    "SupervisorEscalation",
    "SupervisorOutcome",
    "UserMessageCancelled",
    "UserMessageConsumed",
    "UserMessageDelivered",
    "UserMessageExpired",
    "UserMessageQueued",
    "WindowWidened",
    "decode_lines",
    "encode",
]
