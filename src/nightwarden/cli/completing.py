"""What the shell may complete: a completion costs time at every Tab, and must print nothing else.

Read next: `main.py`.
"""

from __future__ import annotations

import os
from typing import Final

import typer

_ASKED: Final = "_NIGHTWARDEN_COMPLETE"


def is_completing() -> bool:
    """Whether the shell runs this process for a completion."""
    return bool(os.environ.get(_ASKED))


def node_types(incomplete: str) -> list[str]:
    """The node types that begin so: built in and installed ones; no file of the user's is run."""
    from nightwarden.nodes.registry import Registry

    try:
        return [name for name in Registry().names() if name.startswith(incomplete)]
    except Exception:  # an installed plugin that is broken; `nodes` itself says how
        return []


def run_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """The recorded runs that begin so, the latest first, where looking costs next to nothing."""
    from nightwarden.settings import load_settings
    from nightwarden.store.opening import open_store

    try:
        place = str(ctx.params.get("store") or load_settings().store_url)
        if "://" in place:  # a server may be far away, or ask for a password
            return []
        with open_store(place) as store:
            known = [*reversed(store.run_ids()), "last"]
    except Exception:  # what is wrong is said by the command itself
        return []
    return [run_id for run_id in known if run_id.startswith(incomplete)]
