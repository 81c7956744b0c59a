"""Steps of `poster.yaml`. Services that cost money are stood in for; pictures and files are real.

    image, upscale    paint small PNG pictures, and book what a service would charge
    publish           appends to a file, which stands for the outside; knows a key it has seen
    fault             names what goes wrong, so that the same failure comes when it is called for

Read next: `poster.yaml`, `poster.answers.yaml`.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import statistics
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field

from nightwarden import AssetRef, Context, NodeError, node
from nightwarden.nodes.io import outputs

TAKE_USD: Final = 0.04
UPSCALE_USD: Final = 0.02
SIZE: Final = (48, 64)
"""Width and height of a draft, in pixels."""

Fault = Literal["none", "busy", "gate", "after_spend", "publish_lost_answer", "notify_down"]
Rgb = tuple[int, int, int]

_STYLES: Final = ("woodcut", "screen print", "cut paper", "gouache")
_INKS: Final[Sequence[Rgb]] = ((18, 28, 66), (60, 16, 44), (10, 56, 48), (54, 34, 8))
_PAPERS: Final[Sequence[Rgb]] = ((250, 226, 172), (252, 208, 196), (214, 240, 226), (244, 240, 228))


@dataclass(frozen=True, slots=True)
class Draft:
    """One take: the picture in the run's store, and its pixels, three bytes each, row by row."""

    picture: AssetRef
    width: int
    height: int
    pixels: bytes


@dataclass(frozen=True, slots=True)
class Choice:
    """Which take goes on, from 1, and why."""

    take: Annotated[int, Field(ge=1)]
    why: str


@outputs
class Drafts(NamedTuple):
    """All takes, and the one the service likes best."""

    takes: list[Draft]
    best: Choice


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the outside says: the key, the line of the outbox, whether it knew the key already."""

    key: str
    line: int
    again: bool


@node(retry_safe=True, pure=True)
def enhance(prompt: str) -> str:
    """Say more exactly what is to be seen. Equal prompts become equal descriptions."""
    words = " ".join(prompt.split())
    if not words:
        raise NodeError("the prompt is empty: say what the poster shows", code="no-prompt")
    style = _STYLES[_seed(words)[0] % len(_STYLES)]
    return f"{words}, {style}, two colours on coloured paper"


# Painting the same again would do no harm; what it costs is not for this step to judge. So it
# says `retry_safe`, and the engine takes retry away as soon as money was spent or a file made.
@node(retry_safe=True)
def image(
    description: str,
    ctx: Context,
    *,
    takes: Annotated[int, Field(ge=2, le=8)] = 2,
    fault: Fault = "none",
) -> Drafts:
    """Have a picture painted, in several takes; each is paid for."""
    if fault == "busy" and ctx.attempt == 1:
        raise NodeError("the image service is busy: 3 requests are waiting", code="busy")
    drafts = []
    for take in range(1, takes + 1):
        washed_out = fault == "gate" and take == 1
        pixels = bytes(_painted(f"{description} #{take}", washed_out=washed_out))
        ctx.spend(TAKE_USD, what=f"take {take}")
        picture = ctx.assets.write(f"draft-{take}.png", png(*SIZE, pixels), media_type="image/png")
        drafts.append(Draft(picture, *SIZE, pixels))
    return Drafts(drafts, Choice(1, "what the image service ranks first"))


@node(retry_safe=True, pure=True)
def contrast(takes: list[Draft], choice: Choice) -> float:
    """How far a picture's pixels lie from its mean lightness, from 0 (one grey) to 1."""
    pixels = _chosen(takes, choice).pixels
    lightness = [
        (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255
        for r, g, b in zip(pixels[::3], pixels[1::3], pixels[2::3], strict=True)
    ]
    return round(2 * statistics.pstdev(lightness), 4)


@node(retry_safe=True)
def upscale(
    takes: list[Draft],
    choice: Choice,
    ctx: Context,
    *,
    factor: Annotated[int, Field(ge=2, le=8)] = 4,
    fault: Fault = "none",
) -> AssetRef:
    """Have the chosen take made larger; this is paid for too."""
    draft = _chosen(takes, choice)
    ctx.spend(UPSCALE_USD, what=f"{factor} times the size")
    if fault == "after_spend":
        raise ConnectionError("the upscaling service hung up before the picture was there")
    pixels = bytes(_enlarged(draft, factor))
    larger = png(draft.width * factor, draft.height * factor, pixels)
    return ctx.assets.write("poster.png", larger, media_type="image/png")


@node(idempotent_by="key")
def publish(
    poster: AssetRef, caption: str, key: str, outbox: Path, ctx: Context, *, fault: Fault = "none"
) -> Receipt:
    """Post a poster. The outside takes a key once; the next time it answers as the first time."""
    post = {"key": key, "caption": caption, "picture": poster.name, "sha256": poster.digest}
    receipt = _deliver(ctx.workdir / outbox, key, post)
    if fault == "publish_lost_answer" and ctx.attempt == 1:
        raise TimeoutError("no answer to the post within 10 s; it may have arrived")
    return receipt


@node
def notify(
    receipt: Receipt, caption: str, notes: Path, ctx: Context, *, fault: Fault = "none"
) -> str:
    """Tell people, in one line appended to a file. Twice would not be harmless."""
    if fault == "notify_down":
        raise ConnectionError("the chat refused the connection")
    line = f"published as no. {receipt.line}: {caption}"
    with (ctx.workdir / notes).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    return line


def png(width: int, height: int, pixels: bytes) -> bytes:
    """A PNG file of 8-bit RGB pixels, row by row."""
    row = width * 3
    # Each row begins with the number of its filter; 0 is none.
    raw = b"".join(b"\0" + pixels[at : at + row] for at in range(0, height * row, row))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_part(kind, data) for kind, data in parts)


def _part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _chosen(takes: Sequence[Draft], choice: Choice) -> Draft:
    if choice.take > len(takes):
        raise NodeError(f"there is no take {choice.take}, only {len(takes)}", code="no-take")
    return takes[choice.take - 1]


def _seed(text: str) -> bytes:
    return hashlib.blake2b(text.encode()).digest()


def _painted(text: str, *, washed_out: bool) -> Iterator[int]:
    """Dark hills under a light sky with a sun; where and how follows from the text alone."""
    seed = _seed(text)
    ink, paper = _INKS[seed[1] % len(_INKS)], _PAPERS[seed[2] % len(_PAPERS)]
    if washed_out:
        ink = _between(ink, paper, 0.9)
    width, height = SIZE
    sun = (width * (0.2 + seed[3] / 425), height * (0.15 + seed[4] / 1275), 4 + seed[5] % 6)
    for y in range(height):
        for x in range(width):
            hills = height * (0.55 + 0.12 * math.sin(x / (4 + seed[6] % 8) + seed[7]))
            dark = y > hills or math.hypot(x - sun[0], y - sun[1]) < sun[2]
            # A little of the other colour, more of it towards the bottom.
            yield from _between(paper, ink, 0.92 if dark else 0.25 * y / height)


def _between(one: Rgb, other: Rgb, share: float) -> Rgb:
    r, g, b = (round(a + (z - a) * share) for a, z in zip(one, other, strict=True))
    return r, g, b


def _enlarged(draft: Draft, factor: int) -> Iterator[int]:
    """Each pixel of the larger picture lies between the four nearest of the smaller one."""
    right, low = draft.width - 1, draft.height - 1
    for y in range(draft.height * factor):
        top, down = divmod(y, factor)
        for x in range(draft.width * factor):
            left, along = divmod(x, factor)
            upper = _mixed(draft, left, min(left + 1, right), top, along / factor)
            lower = _mixed(draft, left, min(left + 1, right), min(top + 1, low), along / factor)
            yield from _between(upper, lower, down / factor)


def _mixed(draft: Draft, left: int, right: int, row: int, share: float) -> Rgb:
    return _between(_pixel(draft, left, row), _pixel(draft, right, row), share)


def _pixel(draft: Draft, x: int, y: int) -> Rgb:
    at = 3 * (y * draft.width + x)
    r, g, b = draft.pixels[at : at + 3]
    return r, g, b


def _deliver(outbox: Path, key: str, post: dict[str, str]) -> Receipt:
    """The outside: one line a post, and a key is taken once, whoever sends it again."""
    with outbox.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        keys = [json.loads(line)["key"] for line in file]
        if key in keys:
            return Receipt(key, keys.index(key) + 1, again=True)
        file.write(json.dumps(post) + "\n")
        return Receipt(key, len(keys) + 1, again=False)
