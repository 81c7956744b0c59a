"""The worklist: everything that follows from one fact, done before the next one is taken in.

Read next: `machine.py`.
"""

from __future__ import annotations

from typing import assert_never

from nightwarden.kernel import control, engine, reading
from nightwarden.kernel.closing import close_absent, take
from nightwarden.kernel.escalating import kernel_failed
from nightwarden.kernel.routing import arrive_port, cut, finish_under, place, settle
from nightwarden.kernel.state import (
    State,
)
from nightwarden.kernel.tasks import (
    Advance,
    Arrive,
    ControllerDone,
    Cut,
    FailCall,
    NeverOpened,
    PlaceFreed,
    RootDone,
    Settle,
    StreamClosed,
    TakeAt,
)


def propagate(state: State) -> None:
    """Work off everything that follows from what was settled."""
    work = state.work
    while work:
        task = work.popleft()
        match task:
            case Settle():
                settle(state, task.edges, task.item, task.settlement)
            case Arrive():
                arrive_port(state, task.node, task.port, task.item, task.settlement)
            case TakeAt():
                take(state, task.item, task.exit, task.settlement)
            case NeverOpened():
                close_absent(state, task.root, task.item, task.cause)
            case StreamClosed():
                reading.stream_closed(state, task.group, task.buffer)
            case PlaceFreed():
                place(state, task.node)
            case Cut():
                cut(state, task.group)
            case RootDone():
                finish_under(state, task.root)
            case ControllerDone():
                control.controller_done(state, task.node, task.item, task.absent, task.carried)
            case Advance():
                engine.advance(state, task.call)
            case FailCall():
                kernel_failed(state, task.call, task.detail, task.code)
            case _:
                assert_never(task)
