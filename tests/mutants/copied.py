"""A pytest plugin: the package under test must be the copy that `run.py` has made.

An installed package, editable or not, comes after `PYTHONPATH`; this makes sure of it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import nightwarden

COPY = "NIGHTWARDEN_COPY"
NOT_THE_COPY = 9


def pytest_configure() -> None:
    """End at once, and unlike any failing test, where the copy was not found."""
    wanted, found = Path(os.environ[COPY]), Path(nightwarden.__file__).resolve()
    if wanted.resolve() not in found.parents:
        pytest.exit(f"nightwarden is {found}, not the copy in {wanted}", NOT_THE_COPY)
