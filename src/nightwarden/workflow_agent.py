"""A workflow behind the interface of an agent: the graph is the plan, so there is no planning.

    agent = WorkflowAgent(wf, supervise="agent:ollama:llama3.2")
    async for event in agent.execute({"urls": […]}):
        …                       what the run says, as it says it; the last event ends it
    agent.get_results()         the outputs
    agent.result                everything else: status, reason, decisions, costs

Whoever stops listening stops the run. Nothing is decided here that a session would not decide
alike. Read next: `session.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

from nightwarden.errors import RunError
from nightwarden.events import Event
from nightwarden.opening import refuse_other_things
from nightwarden.result import RunResult
from nightwarden.runtime.supervision import Supervisor
from nightwarden.session import Session
from nightwarden.spec.workflow import Workflow

AGENT: Final = "agent"
"""The workspace's own model decides."""


class WorkflowAgent:
    """Runs a workflow each time it is executed, one run after the other.

    `supervise` is a supervisor or a mode; by default the workspace's model is asked. `options`
    are those of `Session`. `result` is the last run's, None before the first has ended.
    """

    def __init__(
        self,
        workflow: Workflow,
        *,
        supervise: Supervisor | str | None = AGENT,
        **options: Any,
    ) -> None:
        refuse_other_things(workflow, None)
        self.workflow = workflow
        self.result: RunResult | None = None
        self._supervise = supervise
        self._options = options
        self._session: Session | None = None

    async def execute(
        self, inputs: Mapping[str, object] | None = None
    ) -> AsyncGenerator[Event, None]:
        """Run the workflow, and yield what it says, as it says it.

        Raises `RunError` for inputs that do not fit, or while another execution goes on, and
        `ModelError` for a model that cannot be asked: both before anything has run. A run that
        fails raises nothing: its last event, and `result`, say so.
        """
        if self._session is not None:
            raise RunError(f"{self.workflow.name} is being executed: wait for it, or cancel it")
        self.result = None
        session = Session(self.workflow, inputs, supervise=self._supervise, **self._options)
        self._session = session
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        session.subscribe(events.put_nowait)
        run = asyncio.ensure_future(session.run())
        run.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            self.result = await run
        finally:
            self._session = None
            if not run.done():
                session.cancel("nobody listens any more")
                await asyncio.wait([run])
            if self.result is None and not run.cancelled() and run.exception() is None:
                self.result = run.result()

    def cancel(self, reason: str = "cancelled") -> None:
        """Cancel the execution that goes on, if one does; on its loop."""
        if self._session is not None:
            self._session.cancel(reason)

    def get_results(self) -> dict[str, object]:
        """The outputs of the last run by name. Raises `RunError` where there are none."""
        if self.result is None:
            raise RunError(f"{self.workflow.name} has no results: it has not been executed yet")
        if not self.result.ok:
            raise RunError(f"{self.workflow.name} has no results: {self.result.reason}")
        return dict(self.result.outputs)
