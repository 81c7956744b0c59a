"""Nodes with set-up and tear-down: one instance a run.

Read next: `driver.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from nightwarden.errors import NodeError
from nightwarden.kernel.effects import Invoke
from nightwarden.nodes.define import Node
from nightwarden.runtime.accounting import Account
from nightwarden.runtime.desk import GRACE_S, Desk

TEARDOWN_S: Final = 30.0
"""How long tearing a node down may take."""


class Instances:
    """The class nodes of one run."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._made: dict[int, Node] = {}

    async def set_up(self, ended: asyncio.Future[Any]) -> bool:
        """Make and set up every class node; False if the run `ended` meanwhile.

        Raises `NodeError` naming the node that could not be set up.
        """
        if not any(b.definition.is_class for b in self._desk.bindings):
            return True
        setting_up = asyncio.get_running_loop().create_task(self._set_up(ended))
        try:
            await asyncio.wait((setting_up, ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not setting_up.done():
                setting_up.cancel()
                await asyncio.wait((setting_up,), timeout=GRACE_S)
        if ended.done():
            return False
        setting_up.result()
        return True

    async def tear_down(self) -> None:
        """Tear down what was set up. One that fails must not hide what the run came to."""
        for index, instance in self._made.items():
            try:
                await asyncio.wait_for(_guarded(instance.teardown), TEARDOWN_S)
            except Exception as error:
                line = self._desk.describe(error)
                self._desk.recorder.warn(_nothing(index), f"tear-down failed: {line}")

    async def _set_up(self, ended: asyncio.Future[Any]) -> None:
        for binding in self._desk.bindings:
            if not binding.definition.is_class:
                continue
            node = binding.node
            try:
                instance = binding.definition.target()
                account = Account()
                self._desk.recorder.leave(node, account)
                await instance.setup(self._desk.context(_nothing(node.index), account))
            except asyncio.CancelledError:
                if ended.done():
                    raise  # the run was cancelled
                raise NodeError(f"{node.id} could not be set up: it cancelled itself") from None
            except BaseException as error:  # a step may raise anything
                line = self._desk.describe(error)
                raise NodeError(f"{node.id} could not be set up: {line}") from error
            self._made[node.index] = instance
            self._desk.codes[node.index] = instance.run


def _nothing(node: int) -> Invoke:
    """An invocation that stands for the node as a whole."""
    return Invoke(0, node, (), 1, ())


async def _guarded(call: Callable[[], Any]) -> None:
    """Run an author's code; whatever it raises comes out as an ordinary exception."""
    try:
        await call()
    except Exception:
        raise
    except BaseException as error:
        raise NodeError(f"{type(error).__name__}: {error}") from error
