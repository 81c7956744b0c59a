"""The report as one HTML file: whole, inert, and the same facts as the text (surfaces.md)."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from records import Record, account, root

import nightwarden as nw
from nightwarden.cli.report import report as report_command
from nightwarden.events.words import visible
from nightwarden.report import (
    fold_costs,
    fold_report,
    report_html,
    report_json,
    report_text,
)
from nightwarden.report.html_parts import el, table
from nightwarden.store.opening import open_store

VOID = ("meta", "br", "img", "input", "link", "hr")
Events = Iterable[Mapping[str, Any]]


class Page(HTMLParser):
    """A page taken apart: `shape` is its tags with their attributes' names, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.shape: list[tuple[str, tuple[str, ...]]] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.unclosed: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shape.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.unclosed.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.unclosed and self.unclosed[-1] != "style":
            self.words.append(data)

    def values(self, name: str) -> list[str]:
        """Every value of an attribute."""
        return [value for _, given, value in self.attributes if given == name]

    @property
    def text(self) -> str:
        """All that can be read."""
        return " ".join(" ".join(self.words).split())


def shop(**words: str) -> Record:
    """A run with everything in it; each word can be replaced."""
    said = {
        "label": "https://shop.example/p/2",
        "detail": "the page is broken",
        "reason": "of no use",
        "value": "some text",
        "log": "slow today",
        "raw": "a;b;c",
        "headline": "completed (supervised): 2/4 items",
        "workflow": "shop",
        "run_id": "r1",
        "model": "m:large",
        "output": "out.csv",
        "signature": "node:broken",
        **words,
    }
    record = Record(said["run_id"])
    record.started(workflow=said["workflow"], inputs={"names": [said["value"]]})
    record.succeeded("price", 0, cost=250_000)
    record.failed("price", 1, detail=said["detail"], item=f"2 {said['label']}")
    told = {"label": said["label"], "detail": said["detail"], "reason": said["reason"]}
    seen = {"inputs": {"name": said["value"]}, "signature": said["signature"]}
    record.decided(1, "price", 1, **told, cost=20_000, model=said["model"], **seen)  # type: ignore[arg-type]
    record.decided(2, "price", 2, by="sticky", **told, **seen)  # type: ignore[arg-type]
    record.decided(3, "price", 3, action="retry", became="retried_succeeded", **told)  # type: ignore[arg-type]
    record.add("log", "price", 0, level="warning", message=said["log"])
    record.add("record_rejected", "price", line=7, reason=said["detail"], raw=said["raw"])
    missing = {"item": "2", "label": said["label"], "kind": "lost", "node": "price"}
    missing |= {"escalation": "e1", "reason": said["reason"]}
    record.ended(
        roots=[root("items[*]", 4, 2, missing=[missing], unfinished=0, marks={"closed": 1})],
        nodes=[account("items[*]", 0, succeeded=1), account("price", 1, succeeded=2, skipped=2)],
        headline=said["headline"],
        supervised=True,
        cost=250_000,
        supervisor_cost=20_000,
        outputs={"price": said["output"]},
    )
    return record


def page(events: Events, **options: Any) -> str:
    return report_html(fold_report(events, **options))


def read(events: Events, **options: Any) -> Page:
    return Page(page(events, **options))


# -- one file, and nothing else --


def test_the_page_needs_nothing_else() -> None:
    text = page(shop().events)
    shown = Page(text)
    tags = {tag for tag, _ in shown.shape}
    assert tags.isdisjoint({"script", "link", "iframe", "object", "img", "form", "base"})
    assert [href for href in shown.values("href") if not href.startswith("#")] == []
    assert shown.values("src") == []
    assert "url(" not in text.replace("url(#nw-arrow)", "")
    assert "@import" not in text


def test_the_page_forbids_itself_everything_but_its_own_styles() -> None:
    text = page(shop().events)
    policy = next(v for tag, n, v in Page(text).attributes if n == "content" and "default" in v)
    assert policy.startswith("default-src 'none'; style-src ")
    assert "unsafe" not in policy
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert len(styles) == 2
    for style in styles:
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert Page(text).values("style") == []


def test_every_link_leads_somewhere_and_every_id_is_one_of_a_kind() -> None:
    shown = read(shop().events)
    ids = shown.values("id")
    assert len(ids) == len(set(ids))
    assert {href[1:] for href in shown.values("href")} <= set(ids)
    assert {"missing", "decisions", "graph", "timeline", "costs", "ledger"} <= set(ids)


def test_tables_say_what_they_are_and_what_their_columns_are() -> None:
    shown = read(shop().events)
    counted = {tag: sum(t == tag for t, _ in shown.shape) for tag in ("table", "caption", "thead")}
    assert counted["table"] == counted["caption"] == counted["thead"] > 5
    scopes = [v for tag, name, v in shown.attributes if tag == "th" and name == "scope"]
    assert set(scopes) == {"col", "row"}
    assert len(scopes) == sum(tag == "th" for tag, _ in shown.shape)


def test_what_scrolls_can_be_reached_with_the_keyboard() -> None:
    shown = read(shop().events)
    scrolls = [a for tag, a in shown.shape if tag == "div" and "tabindex" in a]
    assert scrolls
    assert all({"role", "aria-label"} <= set(names) for names in scrolls)
    assert shown.shape[[tag for tag, _ in shown.shape].index("body") + 1][0] == "a"


# -- what it says --


@pytest.mark.parametrize(
    ("status", "supervised", "shown"),
    [
        ("completed", False, "✅ Completed"),
        ("completed", True, "🛡️ Completed — supervised"),
        ("failed", True, "❌ Failed"),
        ("cancelled", False, "⏹️ Cancelled"),
        ("suspended", False, "⏸️ Suspended"),
    ],
)
def test_the_status_is_shown_as_everywhere(status: str, supervised: bool, shown: str) -> None:
    """surfaces.md, Web: terminal states."""
    record = Record()
    record.started()
    record.ended(status, supervised=supervised, reason="price [2] is gone")
    text = read(record.events).text
    assert shown in text
    assert "price [2] is gone" in text


@pytest.mark.parametrize("status", ["running", "interrupted"])
def test_a_run_without_an_end_says_whether_it_goes_on(status: str) -> None:
    record = Record()
    record.started()
    text = read(record.events, unended=status).text
    assert status.capitalize() in text
    assert ("nightwarden resume r1" in text) is (status == "interrupted")


def test_missing_items_are_named_with_who_decided_so() -> None:
    """supervision.md §7: precisely which items are missing."""
    text = read(shop().events).text
    assert "1 item of items[*] given up at price: of no use" in text
    assert "2 https://shop.example/p/2 by agent, e1" in text


def test_each_decision_tells_what_failed_was_seen_decided_cost_and_became() -> None:
    """supervision.md §7"""
    text = read(shop().events).text
    for said in (
        "price [2 https://shop.example/p/2] skip e1",
        "failed the page is broken (NodeError, node:broken; attempt 1)",
        "saw name = some text",
        "allowed retry, skip, stop",
        "decided skip (of no use) — by agent m:large, $0.02",
        "became skipped",
    ):
        assert said in text


def test_decisions_that_followed_from_another_stand_in_a_table() -> None:
    shown = read(shop().events)
    assert "1 further failure, decided as one like it before" in shown.text
    assert "skip (as for all node:broken)" in shown.text
    assert sum(tag == "article" for tag, _ in shown.shape) == 2


def test_the_graph_has_badges_by_verdict() -> None:
    text = page(shop().events)
    assert re.search(r'<g class="badge skip"><title>skipped: 2</title>', text)
    assert re.search(r'<g class="badge retry"><title>retried: 1</title>', text)
    assert "Decisions: ↻ retried, ⊘ skipped" in Page(text).text


def test_steps_of_one_s_own_are_drawn_from_the_record_alone() -> None:
    record = Record()
    nodes = [("read", "my.Read"), ("each", "my.Each"), ("total", "my.Total")]
    record.started(nodes, [("inputs.names", "read"), ("read", "each"), ("each", "total")])
    record.add("item_emitted", "read")
    record.succeeded("each", 0)
    record.succeeded("total")
    text = page(record.events)
    assert "each: my.Each, for each item of read" in text
    assert "total: my.Total" in text
    assert "each[] → total.value" in text


def test_the_timeline_marks_decisions_and_resumes() -> None:
    record = shop()
    record.waits(3_600)
    record.resumed()
    record.succeeded("price", 3)
    text = page(record.events)
    assert text.count('class="mark skip"') == 2
    assert text.count('class="mark retry"') == 1
    assert text.count('class="resume"') == 1
    assert "What lay between an end and a resume is left out." in text


def test_costs_are_told_by_node_model_and_day_the_supervisor_apart() -> None:
    text = read(shop().events).text
    assert "steps $0.25 supervisor $0.02 together $0.27" in text
    assert "By node Node Cost price $0.25" in text
    assert "m:large $0.00 $0.02" in text
    assert "2026-03-01 $0.25 $0.02" in text


def test_items_of_a_stopped_run_that_never_ran_are_not_kept() -> None:
    record = Record()
    record.started()
    record.succeeded("price", 0)
    old = root("items[*]", 60, 1)
    old["kept"] = 60  # as older versions counted
    record.ended("failed", roots=[old, root("more[*]", 5, 2, unfinished=3)])
    text = read(record.events).text
    assert "items[*] 60 1 0 59 0" in text
    assert "more[*] 5 2 0 3 0" in text
    assert "59 items of items[*] not through when the run ended." in text


def test_a_clean_run_has_no_empty_parts() -> None:
    record = Record()
    record.started(supervisor="")
    record.succeeded("price", 0)
    record.ended(nodes=[account("price", 1, succeeded=1)])
    shown = read(record.events)
    for title in ("Missing", "Decisions", "Failures", "Costs", "Rejected records", "Warnings"):
        assert title not in shown.text
    assert "graph" in shown.values("id")


def test_of_hundreds_of_decisions_the_first_are_shown_and_all_are_there() -> None:
    record = Record()
    record.started()
    for number in range(1, 201):
        record.decided(number, "price", number, reason=f"because {number}.")
    record.ended()
    shown = read(record.events)
    (folded,) = [n for n, (tag, names) in enumerate(shown.shape) if tag == "details"]
    articles = [n for n, (tag, _) in enumerate(shown.shape) if tag == "article"]
    assert "open" not in shown.shape[folded][1]
    assert sum(n < folded for n in articles) == 20
    assert len(articles) == 200
    assert "180 further decisions" in shown.text
    assert all(f"because {number}." in shown.text for number in range(1, 201))


def test_long_lists_can_be_folded_away_and_are_all_there() -> None:
    record = Record()
    record.started()
    missing = [
        {"item": str(i), "label": f"page {i}", "kind": "lost", "node": "price", "reason": "gone"}
        for i in range(1, 151)
    ]
    record.ended(roots=[root("items[*]", 200, 50, missing=missing)])
    shown = read(record.events)
    (attributes,) = [names for tag, names in shown.shape if tag == "details"]
    assert "open" not in attributes
    assert all(f"page {i} " in shown.text for i in range(1, 151))


def test_every_prefix_of_a_record_has_a_page() -> None:
    events = shop().events
    for end in range(len(events) + 1):
        assert read(events[:end]).unclosed == []


def test_records_of_other_versions_have_a_page_too() -> None:
    """events.md: unknown types and fields are tolerated; old versions load for ever."""
    odd: Events = [
        {"type": "run_started", "definition": {"nodes": [7, {"id": "a"}], "edges": ["x", {}]}},
        {"type": "moon_landed", "at": "soon"},
        {"type": "invocation_succeeded", "node_id": "a", "duration_s": "long", "at": "2026"},
        {"type": "supervisor_decision", "escalation_id": "e7"},
        {"type": "run_completed", "ledger": {"roots": [{"node": "x", "missing": [{}]}]}},
    ]
    assert read(odd).unclosed == []


# -- nothing in it can become anything but text --

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><style>*{display:none}</style>",
    "</title></svg><a href=javascript:alert(1)>x</a>",
    "<!-- ]]> --><details open ontoggle=alert(1)>",
    "&lt;script&gt;&#60;b&#62;",
    "javascript:alert(1)",
    "\x1b[2J\x00\u202egnp.exe\u2028</p>",
)
WORDS = (
    *("label", "detail", "reason", "value", "log", "raw"),
    *("headline", "workflow", "run_id", "model", "output", "signature"),
)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_words_change_nothing_of_the_page_but_its_words(hostile: str) -> None:
    harmless = read(shop(**dict.fromkeys(WORDS, "word")).events)
    shown = read(shop(**dict.fromkeys(WORDS, hostile)).events)
    assert shown.shape == harmless.shape
    assert shown.unclosed == []
    assert " ".join(visible(hostile).split()) in shown.text


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_are_as_harmless(hostile: str) -> None:
    """A record need not come from here: ids, types, actions and counts may be anything."""

    def record(word: str) -> Record:
        found = Record()
        found.started([(word, word)], [], bounds={word: word}, versions={word: word})
        found.add("invocation_failed", word, 0, detail=word, error_type=word, signature=word)
        found.decided(1, word, 0, action=word, became=word, by=word)
        found.events[-3]["escalation"]["id"] = word
        found.events[-2]["escalation_id"] = found.events[-1]["escalation_id"] = word
        found.add("window_widened", word, window=8)
        found.add(f"run_{word}")
        found.ended(
            "failed",
            roots=[root(word, 3, 1, marks={word: 1}, missing=[dict.fromkeys(MISSING, word)])],
            nodes=[account(word, 0, failed=1)],
            outputs={word: {word: [word]}},
        )
        return found

    harmless, shown = read(record("word").events), read(record(hostile).events)
    assert set(shown.shape) <= {*harmless.shape, *FRAME}
    assert [href for href in shown.values("href") if not href.startswith("#")] == []


FRAME = [("rect", ("class", "x", "y", "width", "height", "rx")), ("text", ("class", "x", "y"))]
"""What is drawn around a subworkflow, as which a name with a slash is taken."""

MISSING = ("item", "label", "node", "kind", "reason", "escalation")


def test_nothing_on_the_page_turns_the_direction_of_writing_or_is_no_character() -> None:
    text = page(shop(**dict.fromkeys(WORDS, HOSTILE[-1])).events)
    assert [c for c in text if not c.isprintable() and c != "\n"] == []


def test_elements_escape_whatever_is_no_element() -> None:
    made = el("td", "<b>", el("i", "&"), None, 7, cls='"x"', data_at="<")
    assert made == ('<td class="&quot;x&quot;" data-at="&lt;">&lt;b&gt;<i>&amp;</i>7</td>')
    assert table("Nothing", ["A"], []) == ""


# -- the command --


def shop_run(tmp_path: Path) -> str:
    """A real run in a store; its id."""

    @nw.node(type="shop.Twice", retry_safe=True)
    def twice(n: int, ctx: nw.Context) -> int:
        ctx.spend(0.5)
        return n * 2

    with nw.workflow("numbers") as w:
        w.add(twice, id="twice", n=w.input("numbers", list[int]).each())
    return nw.run(w.build(), {"numbers": [1, 2, 3]}, store=tmp_path).run_id


def test_the_command_writes_one_file_whole(tmp_path: Path, capsys: Any) -> None:
    run_id = shop_run(tmp_path)
    target = tmp_path / "report.html"
    target.write_text("what was there before")
    assert report_command("last", html=target, store=str(tmp_path)) == 0
    shown = Page(target.read_text(encoding="utf-8"))
    assert f"numbers · {run_id}" in shown.text
    assert "✅ Completed" in shown.text
    assert "inputs.numbers[*] 3 3 0 0 0" in shown.text
    assert "steps $1.50" in shown.text
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".tmp")] == []
    told = capsys.readouterr()
    assert (told.out, str(target) in told.err) == ("", True)


def test_the_command_leaves_what_was_there_if_it_cannot_write(tmp_path: Path) -> None:
    shop_run(tmp_path)
    with pytest.raises(OSError, match="No such file"):
        report_command("last", html=tmp_path / "nowhere" / "r.html", store=str(tmp_path))


def test_json_and_a_file_can_be_had_together(tmp_path: Path, capsys: Any) -> None:
    shop_run(tmp_path)
    report_command("last", html=tmp_path / "r.html", json=True, store=str(tmp_path))
    assert json.loads(capsys.readouterr().out)["costs"]["total_usd"] == 1.5
    assert (tmp_path / "r.html").is_file()


# -- H06: secrets --


def leaks(events: Events, forbidden: Iterable[str]) -> list[str]:
    """Forms of a secret that any report of these events shows, whichever way it is read."""
    events = list(events)
    report = fold_report(events)
    made = {
        "page": report_html(report),
        "page, read": html.unescape(report_html(report)),
        "text": report_text(report),
        "json": json.dumps(report_json(report)),
        "json, read": json.dumps(report_json(report), ensure_ascii=False),
        "costs": repr(fold_costs(events)),
    }
    forms = [form for plain in forbidden for form in (plain, json.dumps(plain)[1:-1])]
    forms += [html.escape(form) for form in forms]
    return [f"{where}: {form}" for where, text in made.items() for form in forms if form in text]


def test_a_leak_would_be_found() -> None:
    record = Record()
    record.started()
    record.failed("price", detail='the key is zk"7 <here>')
    assert leaks(record.events, ['zk"7']) != []
    assert leaks(record.events, ["another"]) == []


@pytest.mark.parametrize("supervised", [False, True])
def test_h06_no_report_shows_a_secret(cases: Path, tmp_path: Path, supervised: bool) -> None:
    """supervision.md §4: there is no unredacted record anywhere, reports included."""
    home = cases / "H06_secret_everywhere"
    secrets = json.loads((home / "secrets.json").read_text(encoding="utf-8"))
    forbidden = json.loads((home / "forbidden.json").read_text(encoding="utf-8"))

    @nw.node(type="case.Pull", retry_safe=True, label="{request}")
    def pull(request: dict[str, Any], ctx: nw.Context) -> str:
        key, doc = ctx.secret("PARTNER_KEY"), ctx.secret("PARTNER_DOC")
        ctx.log.warning(f"calling with {key} and {json.loads(doc)!r}")
        ctx.rejected(1, f"row {key}", f"bad {doc}")
        basic = base64.b64encode(f"svc:{key}".encode()).decode()
        error = nw.RecoverableError(
            f"403 from https://partner.example/v1?key={urllib.parse.quote(key, safe='')}&page=2 "
            f"Basic {basic} {doc} {json.loads(doc)!r} { ({'Authorization': f'Bearer {key}'})!r}",
            candidate_output={"seen": key, "as": [doc]},
            code="refused",
        )
        error.add_note(f"the key was {key}")
        raise error from OSError(f"refused {key}")

    with nw.workflow("H06") as w:
        w.add(pull, id="pull", request=w.input("request", dict[str, Any]))
    answers = tmp_path / "answers.yaml"
    answers.write_text(
        json.dumps([{"when": {"node": "pull"}, "answer": {"action": "skip", "reason": "no"}}])
    )
    result = nw.run(
        w.build(),
        {"request": {"account": {"api_key": "plain-other-value", "region": "eu"}}},
        secrets=secrets,
        store=tmp_path / "store",
        supervise=f"scripted:{answers}" if supervised else None,
    )
    with open_store(tmp_path / "store") as store:
        events = list(store.read(result.run_id))
    assert leaks(events, [*forbidden, "plain-other-value"]) == []
    shown = html.unescape(page(events))
    for readable in ("403", "partner.example", "page=2"):
        assert readable in shown
