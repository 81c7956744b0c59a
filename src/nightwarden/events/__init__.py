"""What a run says: one append-only sequence; everything else is read from it.

One file a family; `codec.py` turns events into lines, `render.py` into words.

Read next: `base.py`.
"""

from nightwarden.events.base import FORMAT, Event
from nightwarden.events.codec import decode_lines, encode
from nightwarden.events.invocation import (
    InvocationFailed,
    InvocationPruned,
    InvocationStarted,
    InvocationSucceeded,
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
    RunCancelled,
    RunCompleted,
    RunEnded,
    RunFailed,
    RunStarted,
    RunStopping,
    RunSuspended,
)
from nightwarden.events.supervision import (
    SupervisorDeciding,
    SupervisorDecision,
    SupervisorEscalation,
    SupervisorOutcome,
)

__all__ = [
    "FORMAT",
    "Event",
    "InvocationFailed",
    "InvocationPruned",
    "InvocationStarted",
    "InvocationSucceeded",
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
    "RunStarted",
    "RunStopping",
    "RunSuspended",
    "StreamClosed",
    "SupervisorDeciding",
    "SupervisorDecision",
    "SupervisorEscalation",
    "SupervisorOutcome",
    "WindowWidened",
    "decode_lines",
    "encode",
]
