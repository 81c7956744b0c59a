"""The public test kit: asyncio on virtual time, and whole runs on it.

Read next: `loop.py`, `runs.py`.
"""

from nightwarden.testing.executor import InlineExecutor
from nightwarden.testing.loop import Deadlock, VirtualLoop, run
from nightwarden.testing.runs import Played, play

__all__ = ["Deadlock", "InlineExecutor", "Played", "VirtualLoop", "play", "run"]
