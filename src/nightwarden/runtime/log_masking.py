"""Log records of other libraries pass the same mask as our own.

    with masked_logging(registry): …

While it is open, every record any logger makes in this process is masked as it is made, before
a handler sees it, whichever handlers are added later; a filter on the handlers there are masks
what `extra=` puts in afterwards. A record without anything to hide stays untouched, its
exception and arguments included.

Read next: `secrets.py`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from nightwarden.masking.redaction import HIDDEN, SecretRegistry

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_FORMATTER: Final = logging.Formatter()


class MaskingLogFilter(logging.Filter):
    """Masks a record in place and lets it through; for any handler or logger."""

    def __init__(self, registry: SecretRegistry) -> None:
        super().__init__()
        self._registry = registry

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true: a record is masked, never dropped."""
        try:
            self._message(record)
            self._traceback(record)
            self._extras(record)
        except Exception:
            record.msg, record.args = HIDDEN, ()
            record.exc_info = record.exc_text = record.stack_info = None
        return True

    def _message(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except Exception:
            # Arguments that do not fit: logging would print them raw in its own complaint.
            message = f"{record.msg} {record.args!r}"
            record.msg, record.args = self._registry.mask_text(message), ()
            return
        masked = self._registry.mask_text(message)
        if masked != message:
            record.msg, record.args = masked, ()

    def _traceback(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[0] is not None:
            text = _FORMATTER.formatException(record.exc_info)
            masked = self._registry.mask_text(text)
            if masked != text:
                # Formatters print `exc_text`; the raw exception must reach no handler.
                record.exc_text, record.exc_info = masked, None
        elif record.exc_text:
            record.exc_text = self._registry.mask_text(record.exc_text)
        if record.stack_info:
            record.stack_info = self._registry.mask_text(record.stack_info)

    def _extras(self, record: logging.LogRecord) -> None:
        for name in vars(record).keys() - _STANDARD:
            value = vars(record)[name]
            masked, changed = self._registry.mask_value({name: value})
            if changed:
                vars(record)[name] = masked[name] if isinstance(masked, dict) else HIDDEN


Factory = Callable[..., logging.LogRecord]

_lock = threading.Lock()
_active: list[MaskingLogFilter] = []


@contextmanager
def masked_logging(registry: SecretRegistry) -> Iterator[MaskingLogFilter]:
    """Mask every log record made in this process until the block ends. Blocks may overlap."""
    mask = MaskingLogFilter(registry)
    with _lock:
        _active.append(mask)
        if not isinstance(logging.getLogRecordFactory(), _MaskingFactory):
            logging.setLogRecordFactory(_MaskingFactory(logging.getLogRecordFactory()))
        handlers = _handlers()
    for handler in handlers:
        handler.addFilter(mask)
    try:
        yield mask
    finally:
        for handler in handlers:
            handler.removeFilter(mask)
        with _lock:
            _active.remove(mask)
            factory = logging.getLogRecordFactory()
            # Another library may have wrapped ours meanwhile: then it stays, and does nothing.
            if not _active and isinstance(factory, _MaskingFactory):
                logging.setLogRecordFactory(factory.before)


class _MaskingFactory:
    """Makes a record as the factory before it did, then masks it for every open block."""

    def __init__(self, before: Factory) -> None:
        self.before = before

    def __call__(self, *args: object, **kwargs: object) -> logging.LogRecord:
        record = self.before(*args, **kwargs)
        for mask in tuple(_active):
            mask.filter(record)
        return record


def _handlers() -> list[logging.Handler]:
    loggers = [logging.getLogger(), *logging.Logger.manager.loggerDict.values()]
    found = [h for logger in loggers if isinstance(logger, logging.Logger) for h in logger.handlers]
    return list(dict.fromkeys([*found, *([logging.lastResort] if logging.lastResort else [])]))
