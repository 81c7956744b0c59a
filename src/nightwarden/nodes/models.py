"""What a step may ask of a model, and how a slot says that it names one.

    model = ctx.model("ollama:llama3.2")
    reply = await model.generate("Summarise: …")

What a call costs is booked on the invocation that makes it, and reserved beforehand: see
`Context.model`. A slot typed `ModelName` or `EmbeddingModelName` holds a model's name, so that a
run is refused before it starts if it is known by then that the model cannot be had.

Read next: `context.py`, `builtin/llm.py`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Final, NamedTuple, Protocol

from nightwarden.nodes.io import Marker
from nightwarden.nodes.working import Backend, Desk, Task, Work

MODEL: Final = Marker("MODEL")
"""Annotates a slot that names a model to talk to, as `provider:name`."""

EMBEDDING_MODEL: Final = Marker("EMBEDDING_MODEL")
"""Annotates a slot that names a model that turns texts into vectors."""

BACKEND: Final = Marker("BACKEND")
"""Annotates a slot that says who works for a node."""

ModelName = Annotated[str, MODEL]
BackendName = Annotated[Backend, BACKEND]
EmbeddingModelName = Annotated[str, EMBEDDING_MODEL]

MAX_TOKENS: Final = 2048
"""The longest answer, unless told otherwise."""


class Reply(NamedTuple):
    """What a model answered. Not `complete`: it was cut off at the longest answer allowed."""

    text: str
    complete: bool = True


class StepModel(Protocol):
    """A model as one invocation may ask it; on the run's own loop only.

    Every call reserves its worst case before it is made and books what it cost afterwards, also
    when it fails. Calls raise `NodeError` with what is wrong (`http:401`, `model:unreachable`,
    `model:refused`, `model:budget`, …), and `OutOfMoney` where the run's budget does not cover it.
    """

    @property
    def name(self) -> str:
        """`provider:name`."""
        ...

    async def generate(
        self,
        prompt: str,
        *,
        instructions: str = ...,
        max_tokens: int = ...,
        temperature: float | None = ...,
    ) -> Reply:
        """One answer, as a whole."""
        ...

    def stream(
        self,
        prompt: str,
        *,
        instructions: str = ...,
        max_tokens: int = ...,
        temperature: float | None = ...,
    ) -> AsyncGenerator[Reply]:
        """One answer in pieces as they come; the last one is empty and says if it is complete.

        Close it (`contextlib.aclosing`) when it is left before its end.
        """
        ...

    async def embed(
        self, texts: Sequence[str], *, dimensions: int | None = ...
    ) -> list[list[float]]:
        """A vector for each text."""
        ...

    async def work(self, task: Task, desk: Desk) -> Work:
        """A piece of work with tools, turn after turn: see `Context.work`."""
        ...
