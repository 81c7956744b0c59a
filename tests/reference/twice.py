"""One run told to two kernels: one that keeps a trace, and one that may take its shorter ways.

    stimulus ──▶ traced kernel ──▶ effects ═══ the same? ═══ effects ◀── untraced kernel

Read next: `drive.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from nightwarden.kernel.effects import Effect, Ended
from nightwarden.kernel.machine import Machine
from nightwarden.kernel.stimuli import Stimulus


class Twice:
    """Two kernels made alike. `machine` is the one with the trace."""

    def __init__(self, make: Callable[[], Machine]) -> None:
        self.machine, self.untraced = make(), make()
        self.machine.trace = []

    def handle(self, stimulus: Stimulus) -> Sequence[Effect]:
        """What follows from a fact. Raises `AssertionError` where that hangs on the way taken.

        So does the account of the run, once it has ended.
        """
        effects = self.machine.handle(stimulus)
        others = self.untraced.handle(stimulus)
        if effects != others:
            assert list(map(_parts, effects)) == list(map(_parts, others))
        if effects and type(effects[-1]) is Ended:
            assert self.machine.report() == self.untraced.report()
        return effects


def _parts(value: object) -> object:
    """What a value consists of: absences are compared by identity otherwise."""
    if isinstance(value, msgspec.Struct):
        parts = (_parts(getattr(value, field)) for field in value.__struct_fields__)
        return type(value).__name__, *parts
    if isinstance(value, dict):
        return {key: _parts(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_parts(part) for part in value]
    return value
