"""The report as one HTML file that needs nothing else: no network, no script, no font.

    what became of it ─ missing ─ decisions ─ graph ─ timeline ─ costs ─ rejected ─ ledger

The page forbids itself everything but its own styles, which it names by their hashes; what
comes from a run is text. Works with the keyboard, in light and dark, on a phone, on paper.

Read next: `html_sections.py`, `html_parts.py`.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from typing import Final

from nightwarden.events.words import count, seconds, text, visible
from nightwarden.report import html_sections as parts
from nightwarden.report.folding import RunReport
from nightwarden.report.html_parts import Markup, el, facts, joined, section
from nightwarden.report.html_style import STYLE
from nightwarden.report.html_timeline import MOST_MARKS, timeline_svg
from nightwarden.report.picture import picture
from nightwarden.report.telling import inputs_text, no_end, short
from nightwarden.spec.badges import SIGNS, WORDS

_SIGNS: Final = {
    "completed": ("✅", "Completed"),
    "supervised": ("🛡️", "Completed — supervised"),
    "failed": ("❌", "Failed"),
    "cancelled": ("⏹️", "Cancelled"),
    "suspended": ("⏸️", "Suspended"),
    "running": ("▶️", "Running"),
    "interrupted": ("⚠️", "Interrupted"),
    "unfinished": ("⚠️", "Unfinished"),
}

_SHRINKS: Final = 1_700
"""A picture up to so many pixels wide is made to fit; a wider one would become too small."""


def report_html(report: RunReport) -> str:
    """The page."""
    kind = status_kind(report)
    sign, words = _SIGNS[kind]
    body = [
        el("a", "To the report", href="#report", cls="skip-link"),
        el("header", *_head(report, kind), _contents(sections := list(_sections(report)))),
        el("main", joined(found for _, _, found in sections), id="report"),
        el("footer", *_foot(report)),
    ]
    page = joined(body)
    title = f"{sign} {words}: {text(report.workflow) or 'run'} {text(report.run_id)}"
    return (
        "<!DOCTYPE html>\n"
        + el(
            "html",
            el("head", *_meta(page), el("title", title), _style()),
            el("body", page),
            lang="en",
        )
        + "\n"
    )


def status_kind(report: RunReport) -> str:
    """One of the words a status is shown by; a supervised completion has its own."""
    if report.status == "completed" and report.supervised:
        return "supervised"
    return report.status if report.status in _SIGNS else "unfinished"


def _style() -> Markup:
    return Markup(f"<style>{STYLE}</style>")


def _meta(page: Markup) -> Iterator[Markup]:
    """Only styles that stand here may apply, and nothing may be loaded or run."""
    styles = [STYLE, *re.findall(r"<style>(.*?)</style>", page, re.DOTALL)]
    hashes = dict.fromkeys(
        base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() for style in styles
    )
    allowed = " ".join(f"'sha256-{found}'" for found in hashes)
    policy = f"default-src 'none'; style-src {allowed}; base-uri 'none'; form-action 'none'"
    yield Markup('<meta charset="utf-8">')
    yield Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">')
    yield Markup('<meta name="viewport" content="width=device-width, initial-scale=1">')
    yield Markup('<meta name="referrer" content="no-referrer">')
    yield Markup('<meta name="color-scheme" content="light dark">')


def _head(report: RunReport, kind: str) -> Iterator[Markup]:
    sign, words = _SIGNS[kind]
    yield el("h1", f"{text(report.workflow) or 'Run'} · {text(report.run_id)}")
    yield el("p", el("span", sign, aria_hidden="true"), f" {words}", cls=f"status {kind}")
    if report.ended:
        said = text(report.headline or report.reason)
        yield el("p", said, cls="headline") if said else Markup()
    else:
        yield el("p", f"{no_end(report)}.", cls="headline")
    if report.reason and text(report.reason) not in text(report.headline):
        yield el("p", report.reason)
    took = seconds(report.took_s)
    yield facts(
        [
            ("Started", text(report.started_at)),
            (
                "Took",
                took + (f", resumed {count(report.resumed, 'time')}" if report.resumed else ""),
            ),
            ("Supervisor", text(report.supervisor) or "none"),
        ]
    )


def _contents(sections: list[tuple[str, str, Markup]]) -> Markup:
    links = [el("li", el("a", title, href=f"#{name}")) for title, name, found in sections if found]
    return el("nav", el("ul", *links), aria_label="Parts of this report")


def _sections(report: RunReport) -> Iterator[tuple[str, str, Markup]]:
    found = {
        ("Missing", "missing"): parts.missing(report),
        ("Decisions", "decisions"): parts.interventions(report),
        ("Steering", "steering"): parts.steering(report),
        ("Failures", "failures"): parts.failures(report),
        ("Graph", "graph"): _graph(report),
        ("Timeline", "timeline"): _timeline(report),
        ("Outputs", "outputs"): parts.outputs(report),
        ("Costs", "costs"): parts.costs(report),
        ("Rejected records", "rejected"): parts.rejected(report),
        ("Warnings", "warnings"): parts.warnings(report),
        ("Ledger", "ledger"): parts.accounts(report),
        ("The run", "run"): _run(report),
    }
    for (title, name), body in found.items():
        yield title, name, section(title, name, body)


def _graph(report: RunReport) -> Markup:
    svg = picture(report.definition, report.states)
    if not svg:
        return Markup()
    drawn = Markup("\n".join(visible(line) for line in svg.splitlines()))
    used = [a for a in SIGNS if any(state.badges[a] for state in report.states)]
    legend = ", ".join(f"{SIGNS[a]} {WORDS[a]}" for a in used)
    width = re.search(r' width="(\d+)"', drawn)
    fits = " fits" if width is not None and int(width[1]) <= _SHRINKS else ""
    box = el("div", drawn, cls=f"scroll{fits}", tabindex="0", role="region", aria_label="Graph")
    return el("figure", box, el("figcaption", f"Decisions: {legend}") if legend else "")


def _timeline(report: RunReport) -> Markup:
    plot = timeline_svg(report.timeline, [state.node for state in report.states])
    if not plot:
        return plot
    words = "Time at work since the start; a diamond is a decision."
    if report.resumed:
        words += " What lay between an end and a resume is left out."
    if len(report.timeline.marks) > MOST_MARKS:
        words += f" The first {MOST_MARKS} decisions are marked."
    box = el("div", plot, cls="scroll fits", tabindex="0", role="region", aria_label="Timeline")
    return el("figure", box, el("figcaption", words))


def _run(report: RunReport) -> Markup:
    versions = ", ".join(f"{text(k)} {text(v)}" for k, v in report.versions.items())
    bounds = ", ".join(f"{text(k)} {short(v)}" for k, v in report.bounds.items())
    return facts(
        [
            *((f"input {name}", said) for name, said in inputs_text(report)),
            ("Bounds", bounds),
            ("Versions", versions),
            ("Definition", text(report.definition_hash)),
            ("Record", text(report.record)),
        ]
    )


def _foot(report: RunReport) -> Iterator[Markup]:
    until = f" Its record was read up to {text(report.ended_at)}." if report.ended_at else ""
    yield el("p", f"The report of run {text(report.run_id)}, made by Nightwarden.{until}")
