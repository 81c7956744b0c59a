"""What a step in a worker process asks of its run, done where the run is.

    secret · money · files · the item's name    asked for, answered
    lines · progress · rejected records · logs  told

Done by the thread that attends to the worker, with the context and the account of the step's own
invocation; both may be used from any thread.

Read next: `attending.py`, `asking.py`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from nightwarden.errors import NodeError
from nightwarden.nodes.context import Context
from nightwarden.runtime.accounting import Account
from nightwarden.runtime.executors.packing import pack_error
from nightwarden.runtime.executors.wire import Answer, Ask, Channel, LogLine, Message, Tell


class Server:
    """Serves one call."""

    def __init__(self, call: int, context: Context, account: Account) -> None:
        self._call = call
        self._services: Final[Mapping[str, Callable[..., Any]]] = {
            "secret": context.secret,
            "spend": lambda usd, what: context.spend(usd, what=what),
            "write": lambda name, data, kind: context.assets.write(name, data, media_type=kind),
            "record": context.assets.record,
            "item": lambda: context.item,
            "decisions": lambda: context.decisions,
            "info": context.log.info,
            "warning": context.log.warning,
            "rejected": context.rejected,
            "progress": context.progress,
            "account.spend": account.spend,
            "account.made": account.made,
        }

    def serve(self, message: Message, channel: Channel) -> None:
        """Do what a message asks for; anything else it might be is passed over."""
        match message:
            case LogLine():
                _log(message)
            case Tell(call, method, arguments) if call == self._call:
                # Nobody waits for an answer that could be an error.
                with contextlib.suppress(Exception):
                    self._services[method](*arguments)
            case Ask():
                channel.send(self._answer(message))

    def _answer(self, ask: Ask) -> Answer:
        if ask.call != self._call:
            late = NodeError("the step is over, and with it what its threads may ask", code="late")
            return Answer(ask.number, True, pack_error(late))
        try:
            return Answer(ask.number, False, self._services[ask.method](*ask.arguments))
        except BaseException as error:  # it is raised where it was asked
            return Answer(ask.number, True, pack_error(error))


def _log(line: LogLine) -> None:
    """Write a record as if it had been made here, where it is masked."""
    logger = logging.getLogger(line.logger)
    if logger.isEnabledFor(line.level):
        record = logger.makeRecord(
            line.logger, line.level, line.file, line.line, line.text, (), None, line.function
        )
        logger.handle(record)
