"""Calls that stream: fan-outs, and steps that read a stream themselves. A task of its own each.

    fan-out   frames ─▶ Emitted ─▶ (Pause … Resume) ─▶ … ─▶ Succeeded
    reader    Requested ─▶ Feed | EndFeed ─▶ Read ─▶ … ─▶ Succeeded

Read next: `untold.py`, `frames.py`, `streams.py`, `step_clock.py`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from typing import Any

from nightwarden.kernel.effects import Invoke
from nightwarden.kernel.stimuli import (
    Emitted,
    Halted,
    Parked,
    Read,
    Requested,
    Stimulus,
    Succeeded,
    Unparked,
)
from nightwarden.nodes.define import Mode
from nightwarden.runtime import frames
from nightwarden.runtime.accounting import Account
from nightwarden.runtime.again import ANEW, Before, changed, same_item
from nightwarden.runtime.binding import Arguments, Binding
from nightwarden.runtime.desk import Desk, uncancel
from nightwarden.runtime.failing import StepTimeout
from nightwarden.runtime.failures import NOTHING_READ
from nightwarden.runtime.feeding import InputFeed
from nightwarden.runtime.step_clock import StepClock
from nightwarden.runtime.streams import LOOK_AHEAD, StepStream
from nightwarden.runtime.untold import TOGETHER, Untold
from nightwarden.spec.catalog import SlotKind


class StreamCall:
    """One streaming call while it runs."""

    def __init__(
        self,
        invoke: Invoke,
        binding: Binding,
        desk: Desk,
        *,
        untold: Untold,
        timed_out: Callable[[StreamCall], None],
    ) -> None:
        self.invoke = invoke
        self._untold = untold
        self.binding = binding
        self._desk = desk
        self._tell_timed_out = timed_out
        self.task: asyncio.Task[None] | None = None
        self.halting = False
        self.gentle = False
        self.abandoned = False
        self.begun = False
        self.timed_out = False
        self.account = Account()
        self.arguments: Arguments | None = None
        self.streams: dict[str, StepStream] = {}
        self._together: list[tuple[object, ...]] = []
        self._resume: asyncio.Future[None] | None = None
        self._paused = False
        self._room = 0
        self._turn = TOGETHER
        self._clock: StepClock

    # -- what the kernel orders --

    def pause(self) -> None:
        """Stop after this frame."""
        self._paused = True

    def resume(self) -> None:
        """Go on."""
        self._paused = False
        if self._resume is not None and not self._resume.done():
            self._resume.set_result(None)

    def halt(self, *, gently: bool) -> None:
        """End: at the next yield, or at once."""
        self.halting, self.gentle = True, gently
        self.resume()
        feed = self._desk.feeds.get(self.binding.node.index)
        if feed is not None:
            feed.leave("nobody takes it any more")
        if not gently and self.task is not None:
            self.task.cancel()

    # -- running --

    async def run(self, arguments: Arguments, code: Any, timeout_s: float | None) -> Stimulus:
        """What the call came to. Raises what the step raises."""
        self.arguments = arguments
        self._clock = StepClock(timeout_s, self._time_out)
        self._open_streams(arguments)
        self._clock.start()
        try:
            if self.binding.fans_list_out:
                return await self._emit_list(arguments.values["items"])
            if self.binding.node.type.fans_out:
                return await self._emit(arguments, code)
            return await self._read(arguments, code)
        except asyncio.CancelledError as error:
            if self.timed_out and not self.halting:
                uncancel()
                raise StepTimeout(f"timeout after {timeout_s:g} s") from error
            raise
        finally:
            self._clock.stop()
            self._untold.tell(self)

    def _open_streams(self, arguments: Arguments) -> None:
        call = self.invoke.call
        for slot in self.binding.node.slots:
            if slot.kind is SlotKind.STREAM:
                stream = StepStream(
                    lambda name=slot.name: self._desk.tell(Requested(call, name, LOOK_AHEAD)),  # type: ignore[misc]
                    self._using,
                    lambda name=slot.name: self._desk.losses(call, name),  # type: ignore[misc]
                    parked=self._clock.stop,
                    unparked=self._clock.start,
                )
                self.streams[slot.name] = stream
                arguments.values[slot.name] = stream

    async def _read(self, arguments: Arguments, code: Any) -> Stimulus:
        if self.binding.definition.mode is Mode.COROUTINE:
            value = await code(**arguments.values)
        else:
            value = await self._desk.executor.run(lambda: code(**arguments.values))
        if self.halting:
            return Halted(self.invoke.call)
        return Succeeded(self.invoke.call, self.binding.results(value))

    async def _emit(self, arguments: Arguments, code: Any) -> Stimulus:
        call, binding, desk = self.invoke.call, self.binding, self._desk
        bus = desk.services.bus
        once: dict[str, object] = {}
        has_ends, together = bool(binding.node.ends), self._together
        before = deque(desk.again.get(call, ANEW).frames)
        source = self._frames(arguments, code)
        try:
            async for value in source:
                frame = binding.frame(value)
                if has_ends:
                    once.update(binding.once(value))
                if before:
                    self._compare(before, frame)
                elif bus.active:
                    desk.recorder.emitted(self.invoke, frame, read=self.read_so_far())
                together.append(frame)
                if len(together) >= self._room and self._full():
                    await self._give_way()
                if self.halting:
                    break
        finally:
            await self._close(source)
        if self.halting:
            return Halted(call)
        if before:
            self._put_out_again(before)
            raise changed(f"it put out {len(before):,} items fewer than before")
        return Succeeded(call, binding.ends(once))

    def _compare(self, before: deque[Before], frame: tuple[object, ...]) -> None:
        """An item that was put out before has to be the same; else all of those stand."""
        kept = self._desk.recorder.keeper.kept(self.invoke.node, self.binding.node.outs, frame)
        if same_item(before[0], kept.outputs, kept.absent):
            before.popleft()
            return
        self._put_out_again(before)
        raise changed("it put out another item than before")

    def _put_out_again(self, before: Iterable[Before]) -> None:
        for item in before:
            self._desk.tell(Emitted(self.invoke.call, item.values()))

    def read_so_far(self) -> Mapping[str, int]:
        """How many items it has read, by slot."""
        found = {name: stream.read for name, stream in self.streams.items() if stream.read}
        return found or NOTHING_READ

    # -- what is told together --

    def _full(self) -> bool:
        """Whether as many frames are together as there is room for; then they are told.

        Room is asked for when the first of them comes.
        """
        if not self._room:
            self._room = min(self._turn, self._desk.machine.room(self.invoke.call))
            if self._room > 1:
                self._untold.note(self)
                return False
        self._untold.tell(self)
        self._turn = TOGETHER
        return True

    def _using(self) -> bool:
        """The step is about to use what it was shown."""
        if not self._desk.machine.wanted(self.invoke.call):
            return False
        self._untold.note(self)
        return True

    def tell(self) -> None:
        """Tell what has not been told."""
        call, tell = self.invoke.call, self._desk.tell
        for name, stream in self.streams.items():
            if stream.used:
                tell(Read(call, name, stream.told()))
        self._room = 0
        if self._together:
            first, *more = self._together
            self._together.clear()
            self._turn = max(1, self._turn - 1 - len(more))
            tell(Emitted(call, first, more))

    async def _give_way(self) -> None:
        """After what was told together: wait for room, or let others have a turn."""
        if not self._paused:
            await asyncio.sleep(0)
        elif not self.halting:
            await self._wait_for_room()

    async def _emit_list(self, items: Sequence[object]) -> Stimulus:
        """A list fanned out by the engine itself: nothing to run, check or write down."""
        await self._emit_items(items)
        feed = self._desk.feeds.get(self.binding.node.index)
        if feed is not None:
            await self._emit_pushed(feed)
        call = self.invoke.call
        return Halted(call) if self.halting else Succeeded(call, ())

    async def _emit_pushed(self, feed: InputFeed) -> None:
        while not self.halting:
            await self._wait_for_items(feed)
            pushed = () if self.halting else feed.take()
            await self._emit_items(pushed)
            if feed.closed and not pushed:
                return

    async def _emit_items(self, items: Sequence[object]) -> None:
        together = self._together
        for item in items:
            together.append((item,))
            if len(together) >= self._room and self._full() and self._paused:
                await self._wait_for_room()
            if self.halting:
                return

    async def _wait_for_items(self, feed: InputFeed) -> None:
        """Wait for a push; the engine must not take this for work of its own."""
        if feed.ready:
            return
        self._desk.tell(Parked(self.invoke.call))
        try:
            if not self.halting:
                await feed.wait()
        finally:
            self._desk.tell(Unparked(self.invoke.call))

    def _frames(self, arguments: Arguments, code: Any) -> Any:
        produced = code(**arguments.values)
        mode = self.binding.definition.mode
        if mode is Mode.ASYNC_GENERATOR:
            closes = isinstance(produced, AsyncGenerator)
            return produced if closes else frames.from_async(produced)
        if mode is Mode.INLINE_GENERATOR:
            return frames.from_inline(produced)
        return frames.ThreadFrames(produced)

    async def _close(self, source: Any) -> None:
        """Close the generator; a gentle close that raises is a warning, not a failure."""
        at_once = self.timed_out or (self.halting and not self.gentle)
        if at_once and not isinstance(source, AsyncGenerator):
            return  # its thread is left behind
        try:
            await source.aclose()
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            if not self.halting:
                raise
            line = self._desk.describe(error)
            self._desk.recorder.warn(self.invoke, f"closing the step failed: {line}")

    async def _wait_for_room(self) -> None:
        self._resume = asyncio.get_running_loop().create_future()
        self._clock.stop()
        try:
            await self._resume
        finally:
            self._clock.start()
            self._resume = None

    def _time_out(self) -> None:
        if self.task is not None and not self.halting:
            self.timed_out = True
            self.task.cancel()
            self._tell_timed_out(self)
