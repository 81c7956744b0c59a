"""The report of a recorded run: what became of it, read from its events and nothing else.

    events ──▶ folding.py ──▶ RunReport ──▶ text.py       for people
                                       ├──▶ as_json.py    for programs
                                       └──▶ comparing.py  against another run

A record without an end (a run that goes on, or whose process died) has a report too: it says
that there is no end, and tells what is known.

Read next: `folding.py`.
"""

from nightwarden.report.as_json import report_json
from nightwarden.report.comparing import differences
from nightwarden.report.folding import Missing, RunReport, fold_report
from nightwarden.report.text import report_text

__all__ = [
    "Missing",
    "RunReport",
    "differences",
    "fold_report",
    "report_json",
    "report_text",
]
