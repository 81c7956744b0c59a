"""All cases, by name, in the order they are played: shape by shape, clean ones first.

Read next: `pages.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nightwarden.evals.case import Case
from nightwarden.evals.cases import join, loop, nested, nightly, pages, poster

CASES: Final[Mapping[str, Case]] = {
    case.name: case
    for module in (pages, poster, nightly, join, loop, nested)
    for case in module.CASES
}
"""Every case by its name."""
