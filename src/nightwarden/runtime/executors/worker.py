"""A worker process: runs one step after the other, and asks its executor for everything else.

    main thread      waits for a Call, loads the code, runs it, sends Done
    listener thread  reads the wire; ends the process the moment the other end is gone

Money, secrets and files are the run's: a step that wants them asks, and goes on when the answer
is there. So nothing a step did is lost when its process dies, and a secret is known to the
masks before the step has it.

Read next: `asking.py`, `wire.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import logging
import os
import sys
import threading
from collections.abc import Mapping
from contextvars import copy_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from nightwarden.errors import NodeError
from nightwarden.nodes.io import absent_cause
from nightwarden.runtime.accounting import current
from nightwarden.runtime.executors.asking import AskedAccount, AskingContext
from nightwarden.runtime.executors.packing import pack_error, unpack_error
from nightwarden.runtime.executors.references import Modules
from nightwarden.runtime.executors.wire import (
    Answer,
    Ask,
    Began,
    Bye,
    Call,
    Channel,
    Done,
    LogLine,
    Message,
    Tell,
    pack_result,
)


def main(fd: int, levels: Mapping[str, int]) -> None:
    """Serve the executor behind a socket until it says goodbye. `levels` are those of loggers."""
    os.set_inheritable(fd, False)
    channel = Channel(Connection(fd))
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    logging.getLogger().addHandler(_Forwarding(channel))
    Worker(channel).serve()


class Worker:
    """Runs the steps that come over a channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._jobs: SimpleQueue[tuple[Call, bytes] | None] = SimpleQueue()
        self._answers: dict[int, SimpleQueue[Answer]] = {}
        self._numbers = itertools.count(1)
        self._modules: Modules | None = None

    def serve(self) -> None:
        """Run what comes, one step at a time."""
        threading.Thread(target=self._listen, name="nightwarden-wire", daemon=True).start()
        while (job := self._jobs.get()) is not None:
            self._perform(*job)
            del job  # its inputs may be large, and the next step may be long in coming

    def ask(self, call: int, method: str, *arguments: object) -> Any:
        """What the run says to a wish of a step. Raises what the run raises."""
        number = next(self._numbers)
        box = self._answers[number] = SimpleQueue()
        try:
            self._send(Ask(call, number, method, arguments))
            answer = box.get()
        finally:
            del self._answers[number]
        if answer.failed:
            raise unpack_error(answer.value)
        return answer.value

    def tell(self, call: int, method: str, *arguments: object) -> None:
        """Say something that needs no answer."""
        self._send(Tell(call, method, arguments))

    def _send(self, message: Message, payload: bytes | None = None) -> None:
        try:
            self._channel.send(message, payload)
        except OSError:
            os._exit(1)  # nobody is left to hear it

    def _listen(self) -> None:
        try:
            while True:
                message, payload = self._channel.receive()
                match message:
                    case Call():
                        self._jobs.put((message, payload))
                    case Answer() if message.number in self._answers:
                        self._answers[message.number].put(message)
                    case Bye():
                        self._jobs.put(None)
                        return
        except BaseException:
            # Nobody is left to hear what comes of the step: it ends here and now.
            os._exit(1)

    def _perform(self, call: Call, payload: bytes) -> None:
        try:
            code, values = self._prepared(call, payload)
        except BaseException as error:  # importing runs anybody's code
            self._send(Done(call.number, failed=True), pack_error(error))
            return
        self._send(Began(call.number))
        try:
            result = copy_context().run(self._result, call, code, values)
            failed = False
        except BaseException as error:  # a step may raise anything
            result, failed = pack_error(error), True
        with contextlib.suppress(Exception):
            sys.stdout.flush()  # what a step prints is to be seen even if this process is killed
        self._send(Done(call.number, failed=failed), result)

    def _prepared(self, call: Call, payload: bytes) -> tuple[Any, dict[str, Any]]:
        modules = self._modules = self._modules or Modules(call.main, call.files)
        modules.know(call.files)
        try:
            code = modules.code(call.reference)
            values = modules.loads(payload)
        except BaseException as error:
            raise NodeError(
                f"{call.step}: a worker process could not load the step with its inputs",
                code="not-importable",
            ) from error
        assert isinstance(values, dict)
        return code, values

    def _result(self, call: Call, code: Any, values: dict[str, Any]) -> bytes:
        absent_cause.set(call.absent_cause)
        wire = _ToRun(self, call.number)
        current.set(AskedAccount(wire=wire))
        if call.context_name is not None:
            values[call.context_name] = AskingContext(wire, call)
        value = code(**values)
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
        return pack_result(call, value)


class _ToRun:
    """Implements `asking.Wire` for one call."""

    def __init__(self, worker: Worker, call: int) -> None:
        self._worker = worker
        self._call = call

    def ask(self, method: str, *arguments: object) -> Any:
        """What the run says to a wish."""
        return self._worker.ask(self._call, method, *arguments)

    def tell(self, method: str, *arguments: object) -> None:
        """Say something that needs no answer."""
        self._worker.tell(self._call, method, *arguments)


class _Forwarding(logging.Handler):
    """Hands log records to the process that has the masks, the levels and the handlers."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record as text."""
        try:
            line = LogLine(
                record.name,
                record.levelno,
                record.pathname,
                record.lineno,
                record.funcName or "",
                self.format(record),
            )
            self._channel.send(line)
        except Exception:  # logging must not fail the code that logs
            return
