"""The workflow of `pages.yaml`, built in Python: the same graph, the same checks.

    nightwarden.run(build(), inputs={"urls": ["https://…"]})

Run as a script it writes the canonical form, which is `pages.json`.
"""

from __future__ import annotations

import json

import nightwarden as nw
from nightwarden.spec.workflow import Workflow


def build() -> Workflow:
    """Fetch pages, summarise each, and write one table."""
    purpose = "Fetches web pages, summarises each, and writes one table."
    with nw.workflow("pages", description=purpose) as w:
        urls = w.input("urls", "list[str]", description="Addresses of the pages")
        csv = w.input("csv", "path", default="pages.csv", description="Where the table goes")

        page = w.add("http.Fetch", id="page", url=urls.each(), timeout_s=2, attempts=2)
        text = w.add("html.Extract", id="text", page=page)
        summary = w.add(
            "text.Summarise", id="summary", text=text.slot("body"), max_sentences=2, max_chars=400
        )
        row = w.add(
            "data.Record",
            id="row",
            url=page.slot("url"),
            title=text.slot("title"),
            summary=summary,
        )
        w.add("file.WriteCsv", id="table", rows=row.collect(), path=csv)
    return w.build()


if __name__ == "__main__":
    print(json.dumps(build().canonical(), indent=2, ensure_ascii=False))
