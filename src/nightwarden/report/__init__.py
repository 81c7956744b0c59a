"""The report of a recorded run: what became of it, read from its events and nothing else.

    events ──▶ folding.py ──▶ RunReport ──▶ text.py       for people at a terminal
                                       ├──▶ html.py       for people, as one HTML file
                                       ├──▶ as_json.py    for programs
                                       └──▶ comparing.py  against another run

A record without an end (a run that goes on, or whose process died) has a report too: it says
that there is no end, and tells what is known.

Read next: `folding.py`.
"""

from nightwarden.report.as_json import report_json
from nightwarden.report.comparing import (
    Difference,
    compare,
    comparison_json,
    comparison_text,
    costs_text,
    differences,
)
from nightwarden.report.costing import Costs, fold_costs
from nightwarden.report.folding import RunReport, fold_report
from nightwarden.report.html import report_html
from nightwarden.report.missing import Missing
from nightwarden.report.spending import Spending, spending_json, spending_text
from nightwarden.report.text import report_text

__all__ = [
    "Costs",
    "Difference",
    "Missing",
    "RunReport",
    "Spending",
    "compare",
    "comparison_json",
    "comparison_text",
    "costs_text",
    "differences",
    "fold_costs",
    "fold_report",
    "report_html",
    "report_json",
    "report_text",
    "spending_json",
    "spending_text",
]
