"""Where plain `def` steps run. Read next: `base.py`."""

from nightwarden.runtime.executors.base import Executor
from nightwarden.runtime.executors.threads import ThreadExecutor

__all__ = ["Executor", "ThreadExecutor"]
