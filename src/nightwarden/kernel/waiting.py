"""Calls that wait at their places: for an answer, for a fact from outside, for a second item.

`State.awaiting` counts these calls. They hold their places at their nodes, so that what is queued
behind them waits for the same; when nothing else is left to move, a window may have to give.

Read next: `machine.py`.
"""

from __future__ import annotations

from nightwarden.kernel.state import Call, State


def waits(state: State, call: Call) -> None:
    """A call waits for one thing more."""
    state.awaiting += not call.awaiting
    call.awaiting += 1


def waits_for_one_less(state: State, call: Call) -> None:
    """One thing a call waits for has come."""
    call.awaiting -= 1
    state.awaiting -= not call.awaiting


def waits_no_more(state: State, call: Call) -> None:
    """A call is over: whatever it has asked for, it no longer waits for."""
    state.awaiting -= bool(call.awaiting)
    call.awaiting = 0


def may_wait(state: State, call: Call) -> None:
    """A call that goes on while an item it asked for is still to come may be at work, or wait."""
    waiting = not call.parked and any(buffer.wanted for buffer in (call.buffers or {}).values())
    if waiting and not call.besides:
        waits(state, call)
    elif call.besides and not waiting:
        waits_for_one_less(state, call)
    call.besides = waiting


def is_idle(state: State) -> bool:
    """Whether nothing will move by itself: only who waits is at work, the rest queues behind."""
    return state.active - state.awaiting == sum(len(node.queue) for node in state.nodes)
