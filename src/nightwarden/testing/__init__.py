"""The public test kit: asyncio on virtual time, whole runs on it, and models that are none.

Read next: `loop.py`, `runs.py`, `model_server.py`.
"""

from nightwarden.testing.executor import InlineExecutor
from nightwarden.testing.loop import Deadlock, VirtualLoop, run
from nightwarden.testing.runs import Played, play

__all__ = ["Deadlock", "InlineExecutor", "Played", "VirtualLoop", "play", "run"]
