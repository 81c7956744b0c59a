"""Dates, as far as the invoices need them."""


def month_end(year: int, month: int) -> int:
    """The last day of a month."""
    if month == 2:
        return 28
    return 31 if month % 2 else 30
