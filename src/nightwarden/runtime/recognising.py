"""Recognisers of installed packages: how errors of other libraries get a signature.

    [project.entry-points."nightwarden.recognisers"]
    ours = "ours.errors:signature"        # (error) -> "ours:E42", or None for errors of others

They are looked for when the first step fails, once a process.

Read next: `signatures/signature.py`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence

from nightwarden.plugins import RECOGNISERS_GROUP
from nightwarden.signatures.signature import Recogniser, asked


def installed(error: BaseException) -> str | None:
    """The signature the first installed recogniser that knows the error gives it."""
    found = (asked(recogniser, error) for recogniser in _installed())
    return next((signature for signature in found if signature is not None), None)


@functools.cache
def _installed() -> Sequence[Recogniser]:
    """The recognisers, by name. One that cannot be loaded is warned of and left out."""
    from importlib.metadata import entry_points  # noqa: PLC0415  (12 ms that most runs never need)

    found: list[Recogniser] = []
    for point in sorted(entry_points(group=RECOGNISERS_GROUP), key=lambda point: point.name):
        try:
            found.append(point.load())
        except Exception as error:  # code of others must not decide how a step failed
            warnings.warn(
                f"recogniser {point.name} ({point.value}) cannot be loaded: {error!r}",
                stacklevel=2,
            )
    return tuple(found)
