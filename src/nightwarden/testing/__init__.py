"""The public test kit: asyncio on virtual time.

Read next: `loop.py`.
"""

from nightwarden.testing.loop import Deadlock, VirtualLoop, run

__all__ = ["Deadlock", "VirtualLoop", "run"]
