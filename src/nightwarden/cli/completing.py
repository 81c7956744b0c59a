"""What the shell may complete: a completion costs time at every Tab, and must print nothing else.

Read next: `main.py`.
"""

from __future__ import annotations

import os
from typing import Final

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
