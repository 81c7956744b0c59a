"""The lines of what is reserved and booked, for `render.py`.

    supervisor reserves up to $0.05 of $0.50 for openai:gpt-5
    supervisor spent $0.03 (8,000 tokens in, 300 out)

Read next: `render.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from nightwarden.events.budget import Booking
from nightwarden.events.words import dollars

Plain = Mapping[str, Any]


def _reserved(event: Plain) -> str:
    most, cap = dollars(event.get("worst_micro_usd")), event.get("cap_micro_usd")
    limit = "" if cap is None else f" of {dollars(cap)}"
    whom = f" for {event['model']}" if event.get("model") else ""
    return f"{event.get('budget')} reserves up to {most}{limit}{whom}"


def _committed(event: Plain) -> str:
    booked, cost = event.get("booked"), dollars(event.get("cost_micro_usd"))
    whose = event.get("budget")
    if booked == Booking.REFUSED:
        return f"{whose} spent nothing: the request was refused"
    if booked == Booking.WORST:
        return f"{whose} counts {cost} as spent: what the request cost is not known"
    tokens = f"{event.get('tokens_in') or 0:,} tokens in, {event.get('tokens_out') or 0:,} out"
    return f"{whose} spent {cost} ({tokens})"


BUDGET_LINES: Final[Mapping[str, Callable[[Plain], str]]] = {
    "budget_reserved": _reserved,
    "budget_committed": _committed,
}
