"""All streaming calls of a run: each a task of its own, from its order to what came of it.

Read next: `streaming.py`.
"""

from __future__ import annotations

import asyncio

from nightwarden.kernel.effects import EndFeed, Feed, Halt, Invoke, Pause, Resume
from nightwarden.kernel.stimuli import Halted, Succeeded, Unbegun
from nightwarden.runtime.accounting import current
from nightwarden.runtime.desk import GRACE_S, Desk, timeout_of
from nightwarden.runtime.failing import StepTimeout
from nightwarden.runtime.streaming import StreamCall
from nightwarden.runtime.untold import Untold


class StreamCalls:
    """The fan-outs and readers that are running, by call number."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._calls: dict[int, StreamCall] = {}
        self.untold = Untold()

    def begin(self, invoke: Invoke) -> None:
        """Start one in a task of its own."""
        binding = self._desk.bindings[invoke.node]
        call = StreamCall(
            invoke, binding, self._desk, untold=self.untold, timed_out=self._timed_out
        )
        self._calls[invoke.call] = call
        call.task = asyncio.get_running_loop().create_task(self._run(call))

    def pause(self, effect: Pause) -> None:
        """A fan-out has to wait."""
        self._calls[effect.call].pause()

    def resume(self, effect: Resume) -> None:
        """A fan-out may go on."""
        call = self._calls.get(effect.call)
        if call is not None:
            call.resume()

    def feed(self, effect: Feed) -> None:
        """A reader gets the item it asked for."""
        stream = self._calls[effect.call].streams[effect.slot]
        stream.feed(effect.index, effect.value, effect.shown)

    def break_off(self, effect: Feed, error: Exception) -> None:
        """A reader cannot have the item it asked for."""
        self._calls[effect.call].streams[effect.slot].break_off(error)

    def end_feed(self, effect: EndFeed) -> None:
        """A reader has read everything."""
        self._calls[effect.call].streams[effect.slot].end()

    def halt(self, effect: Halt) -> bool:
        """End a call; False if it is none of these."""
        call = self._calls.get(effect.call)
        if call is None:
            return False
        if not call.begun:
            self._withdraw(call)
            return True
        call.halt(gently=effect.gently)
        if not effect.gently:
            asyncio.get_running_loop().call_later(GRACE_S, self._leave_halted, call)
        return True

    def stop(self) -> None:
        """Take back what has not begun."""
        for call in [c for c in self._calls.values() if not c.begun]:
            self._withdraw(call)

    def halt_all(self) -> None:
        """Cancel whatever is still running."""
        for number in list(self._calls):
            self.halt(Halt(number, gently=False))

    async def close(self) -> None:
        """Cancel what the end of a broken run has left."""
        rest = [c.task for c in self._calls.values() if c.task is not None]
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=GRACE_S)

    async def _run(self, call: StreamCall) -> None:
        desk, invoke, binding = self._desk, call.invoke, call.binding
        call.begun = True
        current.set(call.account)
        began = desk.recorder.begun(invoke)
        try:
            call.arguments = binding.arguments(invoke.inputs, desk.services.secret)
            desk.prepare(invoke, call.account, call.arguments)
            if binding.node.type.effectful and desk.services.bus.records:
                await desk.recorder.durable()
            code = desk.codes[invoke.node]
            came_to = await call.run(call.arguments, code, timeout_of(binding.node))
        except BaseException as error:  # whatever a step raises is its failure
            self._calls.pop(invoke.call, None)
            if not call.abandoned:
                arguments, halting = call.arguments, call.halting
                read = call.read_so_far()
                desk.ended_badly(invoke, error, call.account, arguments, halting=halting, read=read)
            return
        self._calls.pop(invoke.call, None)
        if call.abandoned:
            return
        if isinstance(came_to, Succeeded):
            desk.recorder.succeeded(
                invoke, came_to.outputs, call.account, began, read=call.read_so_far()
            )
        else:
            desk.recorder.halted(invoke, call.account)
        desk.tell(came_to)

    def _withdraw(self, call: StreamCall) -> None:
        self._abandon(call)
        if call.task is not None:
            call.task.cancel()
        self._desk.tell(Unbegun(call.invoke.call))

    def _timed_out(self, call: StreamCall) -> None:
        """A step has used up its time and been cancelled."""
        asyncio.get_running_loop().call_later(GRACE_S, self._leave_timed_out, call)

    def _leave_timed_out(self, call: StreamCall) -> None:
        if self._calls.get(call.invoke.call) is not call or call.halting:
            return
        self._abandon(call)
        timeout_s = timeout_of(call.binding.node)
        error = StepTimeout(f"timeout after {timeout_s:g} s, and it does not heed its cancellation")
        self._desk.ended_badly(
            call.invoke,
            error,
            call.account,
            call.arguments,
            halting=False,
            left_behind=True,
            read=call.read_so_far(),
        )

    def _leave_halted(self, call: StreamCall) -> None:
        if self._calls.get(call.invoke.call) is call:
            self._abandon(call)
            self._desk.tell(Halted(call.invoke.call))

    def _abandon(self, call: StreamCall) -> None:
        call.abandoned = True
        del self._calls[call.invoke.call]
