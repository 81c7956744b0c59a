"""What all tests share: Hypothesis profiles, and where the neutral cases lie.

make unit                                        profile `ci`: the same examples every time
pytest --hypothesis-profile=default tests/unit   new examples every time
pytest --hypothesis-profile=soak tests/unit      many more of them
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cases"

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

# A deadline would make a loaded machine fail a sound test.
settings.register_profile("default", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    max_examples=80,
    derandomize=True,
    database=None,
    suppress_health_check=_SLOW_IS_FINE,
)
settings.register_profile(
    "soak", deadline=None, max_examples=5_000, suppress_health_check=_SLOW_IS_FINE
)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def cases() -> Path:
    """The neutral cases with their expected values, and the samples of messy input."""
    return CASES


@pytest.fixture(scope="session")
def samples(cases: Path) -> Path:
    """Files as they come in real life: feeds, tables, pages, replies."""
    return cases / "samples"
