"""The names under which installed packages add to the engine (entry-point groups)."""

from __future__ import annotations

from typing import Final

NODES_GROUP: Final = "nightwarden.nodes"
"""Each entry point is a module with `@node` functions, or one such function."""

SUPERVISORS_GROUP: Final = "nightwarden.supervisors"
"""Each is a function `(argument: str) -> Supervisor`, see `runtime/supervisors/installed.py`."""

RECOGNISERS_GROUP: Final = "nightwarden.recognisers"
"""Each entry point is a function `(error) -> str | None`, see `runtime/recognising.py`."""
