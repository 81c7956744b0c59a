"""A run as OpenTelemetry spans, where an exporter is configured; nothing at all where none is.

    OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 nightwarden run pages.yaml

    traced = telemetry.subscriber()          None unless the environment names an exporter
    session.subscribe(traced); …; await traced.aclose()

What is configured is read from the variables OpenTelemetry itself has. Its packages (extra
`otel`) are imported only then; where they are missing, one line says so and the run goes on.

Read next: `spans.py` (events to spans), `exporting.py` (where spans go).
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from nightwarden.telemetry.exporting import Telemetry

EXPORTER: Final = "OTEL_TRACES_EXPORTER"
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
INSTALL: Final = "pip install 'nightwarden[otel]'"

Warn = Callable[[str], None]


def subscriber(
    environ: Mapping[str, str] | None = None, *, run_id: str = "", warn: Warn | None = None
) -> Telemetry | None:
    """Something to call with every event of one run, and to close; None where nothing is traced.

    `environ` is the process's own unless given. `run_id` names a run that goes on, whose first
    event does not say it. `warn` takes one line when what is configured cannot be had; without
    it, the line is logged. Never raises for what stands in the environment.
    """
    environ = os.environ if environ is None else environ
    names = exporters(environ)
    if not names:
        return None
    warn = warn or logging.getLogger("nightwarden").warning
    try:
        module = importlib.import_module("nightwarden.telemetry.exporting")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "opentelemetry":
            raise
        warn(
            f"{_named_by(environ)} is set, but OpenTelemetry is not installed: {INSTALL}; "
            "the run is not traced"
        )
        return None
    return cast("Telemetry | None", module.open_telemetry(names, environ, run_id, warn))


def exporters(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The exporters an environment names; a variable that is empty counts as unset."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ()
    chosen = [name.strip() for name in environ.get(EXPORTER, "").split(",") if name.strip()]
    if not chosen and any(environ.get(name, "").strip() for name in ENDPOINTS):
        chosen = ["otlp"]
    return tuple(name for name in chosen if name.lower() != "none")


def _named_by(environ: Mapping[str, str]) -> str:
    """The variable that asks for traces."""
    return next(name for name in (EXPORTER, *ENDPOINTS) if environ.get(name, "").strip())
