"""Steps of every shape, as an author types them; they stay the functions they were."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple, assert_type

from nightwarden import (
    ABSENT,
    ARRIVAL,
    ONCE,
    Absent,
    AssetRef,
    Collect,
    Context,
    Many,
    Node,
    NodeError,
    RecoverableError,
    Stream,
    node,
    outputs,
)


@dataclass(frozen=True)
class Page:
    """A record whose fields can be wired."""

    url: str
    body: str


@outputs
class Split(NamedTuple):
    """Two slots; of a generator's frames, `pages` has one value at the end."""

    line: str
    pages: Annotated[int, ONCE]


@node
def plain(word: str) -> int:
    return len(word)


@node(retry_safe=True, label="{url}", timeout=2.5, concurrency=4)
async def fetch(url: str, ctx: Context, attempts: int = 3) -> Page:
    ctx.log.info(f"{ctx.item}: attempt {ctx.attempt} of {attempts}")
    ctx.spend(0.01, what="a call")
    if ctx.secret("KEY") == "":
        raise NodeError("no key", code="no-key")
    return Page(url, "")


@node(retry_safe=True)
def price(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise RecoverableError("no price", candidate_output=text, code="no-price") from None


@node
def branch(value: int) -> Absent | int:
    return value if value else ABSENT


@node
def caption(text: str | Absent) -> str:
    if isinstance(text, Absent):
        return f"nothing: {text.cause}"
    return text.upper()


@node
async def lines(page: Page) -> AsyncIterator[Split]:
    for line in page.body.splitlines():
        yield Split(line, 1)


@node(inline=True)
def count_up(most: int) -> Iterator[int]:
    yield from range(most)


@node(retry_safe=True)
def total(prices: Collect[float], notes: Many[str]) -> str:
    lost = [f"{loss.index}: {loss.cause}" for loss in prices.losses]
    return f"{sum(prices)} {len(prices.indices)} {notes[0].upper()} {lost}"


@node
async def read(
    words: Stream[str], others: Annotated[Stream[int], ARRIVAL], ctx: Context
) -> AssetRef:
    found: list[str] = []
    async for number, word in words.indexed():
        found.append(f"{number}{word.upper()}")
    async for other in others:
        found.append(str(other + 1))
    return ctx.assets.write("words.txt", "".join(found).encode(), media_type="text/plain")


@node(retry_safe=True)
class Counter(Node):
    """One instance a run."""

    async def setup(self, ctx: Context) -> None:
        self.folder: Path = ctx.workdir

    def run(self, word: str) -> str:
        return str(self.folder / word)


@node
async def agent(question: str, ctx: Context) -> str:
    answer = await ctx.call("search", query=question)
    for name, tool in ctx.controls.items():
        ctx.control(name, doc=tool.doc)
    if not answer:
        ctx.suspend("nobody knows", {"question": question})
    return str(answer["output"])


assert_type(plain("four"), int)
assert_type(price("2.5"), float)
assert_type(branch(1), Absent | int)
assert_type(total(Collect([1.0], [0]), Many(["a"])), str)
assert_type(next(count_up(3)), int)
assert_type(Counter().run("a"), str)
