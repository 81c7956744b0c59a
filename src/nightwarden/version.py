"""The version of the package, where build and record both find it."""

from __future__ import annotations

__version__ = "0.1.0"
