"""What tokens cost, in whole micro-dollars, rounded up: user's entry, else the catalogue, offline.

    worst(bytes, most tokens out) ── before a turn
    actual(tokens in, tokens out) ── after it

A price in dollars for a million tokens is the same number in micro-dollars for one. The
catalogue knows prices that change with the length of a request; `Catalogued` asks it, each time.
It is imported only where a price is really looked up.

Read next: `models.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one turn, as the provider counts them; cached ones are part of `tokens_in`."""

    tokens_in: int
    tokens_out: int
    cache_read: int = 0
    cache_write: int = 0


class Price(Protocol):
    """What a model costs."""

    def micro_usd(self, usage: Usage) -> int:
        """The cost of one turn, rounded up to whole micro-dollars."""
        ...

    def words(self) -> str:
        """The price as people read it."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """A price for a million tokens in and out, whatever the length. Zero is a price."""

    dollars_in: Decimal
    dollars_out: Decimal

    def micro_usd(self, usage: Usage) -> int:
        """Tokens times price; cached tokens cost what others do."""
        return _whole(usage.tokens_in * self.dollars_in + usage.tokens_out * self.dollars_out)

    def words(self) -> str:
        """`free`, or both prices."""
        if not self.dollars_in and not self.dollars_out:
            return "free"
        return f"${self.dollars_in} in and ${self.dollars_out} out for a million tokens"


FREE = Fixed(Decimal(0), Decimal(0))
"""A model at home."""


@dataclass(frozen=True, slots=True)
class Catalogued:
    """A price of the catalogue, with its steps by length."""

    price: ModelPrice

    def micro_usd(self, usage: Usage) -> int:
        """As the catalogue works it out."""
        from genai_prices import Usage as Counted  # noqa: PLC0415  (heavy; loaded by now)

        counted = Counted(
            input_tokens=usage.tokens_in,
            output_tokens=usage.tokens_out,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
        )
        return _whole(self.price.calc_price(counted)["total_price"] * 1_000_000)

    def words(self) -> str:
        """Both prices."""
        return str(self.price)


BOTH_WAYS: Final = ("input", "output")


def catalogued(
    provider: str,
    model: str,
    *,
    ways: Sequence[str] = BOTH_WAYS,
    now: datetime | None = None,
) -> Catalogued | None:
    """The catalogue's price of a model; None where it has none for all the ways it is used."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415  (heavy)

    try:
        _, found = get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    price = found.get_prices(now or datetime.now(UTC))
    known = [getattr(price, f"{way}_mtok", None) is not None for way in ways]
    return Catalogued(price) if all(known) else None


def _whole(micro_usd: Decimal) -> int:
    return int(micro_usd.to_integral_value(rounding=ROUND_CEILING))
