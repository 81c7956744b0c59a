"""Streaming calls of the past, told step by step: they wait and pause as they did.

    Pause, Resume, Feed, EndFeed ─▶ the playback, if the call is one
                                 └▶ the call that runs, if it is not

What one fact leads to is performed before the next one is told.

Read next: `replaying.py`, `recorded.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nightwarden.kernel.effects import EndFeed, Feed, Pause, Resume
from nightwarden.kernel.stimuli import Failed, Requested, Stimulus, Succeeded
from nightwarden.runtime.recorded import lack
from nightwarden.runtime.stream_calls import StreamCalls


class Playback:
    """One streaming call of the past, told step by step: it waits and pauses as it did.

    `due`: its next step will be taken, so that it is not taken twice.
    """

    def __init__(self, call: int, steps: Iterator[Stimulus]) -> None:
        self.call = call
        self._steps = steps
        self._waits = self._paused = False
        self.over = self.due = False

    def answered(self) -> None:
        """What it asked for has come."""
        self._waits = False

    def pause(self) -> None:
        """It has to wait."""
        self._paused = True

    def resume(self) -> None:
        """It may go on."""
        self._paused = False

    def next(self) -> Stimulus | None:
        """The next fact; None while it waits, and at its end."""
        if self._waits or self._paused or self.over:
            return None
        step = next(self._steps, None)
        self.over = step is None
        self._waits = isinstance(step, Requested)
        return step


class Playbacks:
    """The playbacks of one run. `soon` calls `play` when what was told has been performed."""

    def __init__(self, tell: Callable[[Stimulus], None], soon: Callable[[Playback], None]) -> None:
        self._tell = tell
        self._soon = soon
        self._playing: dict[int, Playback] = {}

    def begin(self, call: int, steps: Iterator[Stimulus]) -> None:
        """Tell a call of the past."""
        playback = Playback(call, steps)
        self._playing[call] = playback
        self._step(playback)

    def of(self, call: int) -> Playback | None:
        """The playback of a call, if it is one."""
        return self._playing.get(call)

    def end(self, call: int) -> bool:
        """Tell no more of a call; False if it is none of these."""
        return self._playing.pop(call, None) is not None

    def go_on(self, playback: Playback) -> None:
        """Tell its next fact, after what the last one led to."""
        if not playback.due:
            playback.due = True
            self._soon(playback)

    def play(self, playback: Playback) -> None:
        """It is its turn."""
        playback.due = False
        self._step(playback)

    def _step(self, playback: Playback) -> None:
        """Tell its next fact, and come back for the one after it."""
        if self._playing.get(playback.call) is not playback:
            return
        fact = playback.next()
        if fact is None:
            return
        if isinstance(fact, (Succeeded, Failed)):
            del self._playing[playback.call]
            self._tell(fact)
            return
        self._tell(fact)
        self.go_on(playback)


class Orders:
    """What is ordered of streaming calls while a past is told: to playbacks, or to `streams`."""

    def __init__(self, playbacks: Playbacks, streams: StreamCalls) -> None:
        self._playbacks = playbacks
        self._streams = streams

    def all(self) -> Mapping[type, Callable[[Any], None]]:
        """Who performs what."""
        return {
            Pause: self._pause,
            Resume: self._resume,
            Feed: self._feed,
            EndFeed: self._end_feed,
            Playback: self._playbacks.play,
        }

    def _pause(self, effect: Pause) -> None:
        playback = self._playbacks.of(effect.call)
        if playback is None:
            self._streams.pause(effect)
        else:
            playback.pause()

    def _resume(self, effect: Resume) -> None:
        playback = self._playbacks.of(effect.call)
        if playback is None:
            self._streams.resume(effect)
        else:
            playback.resume()
            self._playbacks.go_on(playback)

    def _feed(self, effect: Feed) -> None:
        playback = self._playbacks.of(effect.call)
        if playback is not None:
            playback.answered()
            self._playbacks.go_on(playback)
            return
        error = lack((effect.value, *(value for _, value in effect.shown)))
        if error is None:
            self._streams.feed(effect)
        else:
            self._streams.break_off(effect, error)

    def _end_feed(self, effect: EndFeed) -> None:
        playback = self._playbacks.of(effect.call)
        if playback is None:
            self._streams.end_feed(effect)
        else:
            playback.answered()
            self._playbacks.go_on(playback)
