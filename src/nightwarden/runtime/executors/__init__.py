"""Where steps run: plain `def` steps in threads, others in processes. Read next: `base.py`."""

from nightwarden.runtime.executors.base import PROCESS, Executor, StepExecutor, processors
from nightwarden.runtime.executors.threads import ThreadExecutor

__all__ = ["PROCESS", "Executor", "StepExecutor", "ThreadExecutor", "processors"]
