"""Control events on their way from a step to the kernel, and answers on their way back.

The kernel is told on the run's own loop only: a step in a thread hands its events over, and
waits until they are sent.

Read next: `driver.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from nightwarden.errors import NodeError
from nightwarden.kernel.effects import Answer
from nightwarden.kernel.plan import NodePlan, Plan
from nightwarden.kernel.stimuli import ControlEnded, ControlSent, Stimulus
from nightwarden.nodes.io import ABSENT
from nightwarden.spec.catalog import NodeType
from nightwarden.spec.workflow import WITHIN

T = TypeVar("T")


class Switchboard:
    """All awaited control events of a run, by number."""

    def __init__(self, plan: Plan, tell: Callable[[Stimulus], None]) -> None:
        self.plan = plan
        self.tell = tell
        self._events = 0
        self._waiting: dict[int, asyncio.Future[Answer]] = {}

    def send(self, call: int, target: NodePlan, overrides: Mapping[str, object]) -> None:
        """An event nobody waits for."""
        self._events += 1
        self.tell(ControlSent(call, target.index, self._events, overrides))

    async def ask(
        self, call: int, target: NodePlan, overrides: Mapping[str, object]
    ) -> Mapping[str, object]:
        """An event and its answer. Raises `NodeError` where there is none."""
        self._events += 1
        event = self._events
        waiter: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[event] = waiter
        self.tell(ControlSent(call, target.index, event, overrides, awaits=True))
        try:
            answer = await waiter
        finally:
            self._waiting.pop(event, None)
        if answer.outputs is None:
            raise NodeError(f"no answer from {target.id}: {answer.error}", code="no-answer")
        return {name: answer.outputs.get(name, ABSENT) for name in target.type.outputs}

    def answered(self, answer: Answer) -> None:
        """The kernel has an answer."""
        waiter = self._waiting.get(answer.event)
        if waiter is not None and not waiter.done():
            waiter.set_result(answer)


class CallControls:
    """What one call may control; implements `context.Controls`."""

    def __init__(
        self,
        board: Switchboard,
        call: int,
        node: NodePlan,
        note: Callable[[str, Mapping[str, object], bool], None],
    ) -> None:
        """`note` writes an event down: its target, what it sets, whether the answer is awaited."""
        self._board = board
        self._note = note
        self._call = call
        self._node = node
        self._loop = asyncio.get_running_loop()

    def targets(self) -> Mapping[str, NodeType]:
        """The nodes it controls, by id, as its own file calls them."""
        return {self._short(n): n.type for n in self._board.plan.nodes if self._may(n)}

    def send(self, target: str, overrides: Mapping[str, object]) -> None:
        """Send an event."""
        self._on_loop(partial(self._send, self._find(target), overrides))

    def ask(
        self, target: str, overrides: Mapping[str, object]
    ) -> Coroutine[Any, Any, Mapping[str, object]]:
        """Send an event and wait for its answer. Raises `NodeError` in a thread, at once."""
        if not self._is_on_loop():
            raise NodeError(
                f"the answer of {target} can be awaited on the run's own loop only: make the step "
                "`async def`, or use ctx.control, which waits for no answer",
                code="no-control",
            )
        return self._ask(target, overrides)

    def end(self, target: str) -> None:
        """No further event will come."""
        ended = ControlEnded(self._call, self._find(target).index)
        self._on_loop(partial(self._board.tell, ended))

    def _send(self, found: NodePlan, overrides: Mapping[str, object]) -> None:
        self._note(found.id, overrides, False)
        self._board.send(self._call, found, overrides)

    async def _ask(self, target: str, overrides: Mapping[str, object]) -> Mapping[str, object]:
        found = self._find(target)
        self._note(found.id, overrides, True)
        return await self._board.ask(self._call, found, overrides)

    def _is_on_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:  # a thread
            return False

    def _on_loop(self, act: Callable[[], T]) -> T:
        if self._is_on_loop():
            return act()
        done: Future[T] = Future()

        def perform() -> None:
            try:
                done.set_result(act())
            except BaseException as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(perform)
        return done.result()

    def _may(self, target: NodePlan) -> bool:
        return target.control_root >= 0 and target.control_root in self._node.controls

    def _short(self, target: NodePlan) -> str:
        """An id without the subworkflow both nodes lie in."""
        return target.id.removeprefix(self._node.id.rpartition(WITHIN)[0] + WITHIN)

    def _find(self, target: str) -> NodePlan:
        for node in self._board.plan.nodes:
            if target in (self._short(node), node.id) and self._may(node):
                return node
        known = ", ".join(self.targets()) or "none"
        raise NodeError(
            f"{self._node.id} does not control {target!r}; it controls {known} "
            "(`controls:` in the workflow)",
            code="no-control",
        )
