"""The workflow of `nightly.yaml`, built in Python: the same graph, the same checks.

    nightwarden.run(build(), inputs={"documents": "notes/**/*.md"})

Run as a script it writes the canonical form, which is `nightly.json`.
"""

from __future__ import annotations

import json

import nightwarden as nw
from nightwarden.spec.workflow import Workflow


def build() -> Workflow:
    """Cut documents into pieces, and store them with vectors to search by."""
    purpose = "Cuts documents into pieces, and stores them with vectors to search by."
    faults = "none, chunker_breaks, poisoned, or upsert_lost_answer"
    with nw.workflow("nightly", description=purpose, python=["nightly_nodes.py"]) as w:
        documents = w.input(
            "documents",
            "str",
            default="examples/docs/*.txt",
            description="Which files, as a pattern",
        )
        store = w.input("store", "path", default="nightly.db", description="The SQLite file")
        notes = w.input(
            "notes", "path", default="notifications.txt", description="Where people are told"
        )
        fault = w.input("fault", "str", default="none", description=faults)

        document = w.add("file.Glob", id="document", pattern=documents)
        text = w.add("file.ReadText", id="text", path=document)
        chunk = w.add("nightly_nodes.Chunk", id="chunk", text=text, document=document, fault=fault)
        vector = w.add("nightly_nodes.Embed", id="vector", piece=chunk)
        stored = w.add(
            "nightly_nodes.Upsert",
            id="stored",
            piece=chunk,
            vector=vector,
            store=store,
            fault=fault,
        )

        counted = w.add(
            "nightly_nodes.Count", id="counted", stored=stored.collect(), document=document
        )
        total = w.add(
            "nightly_nodes.Total",
            id="total",
            counts=counted.collect(),
            documents=document.collect(),
        )
        w.add("nightly_nodes.Notify", id="notify", night=total, notes=notes)
    return w.build()


if __name__ == "__main__":
    print(json.dumps(build().canonical(), indent=2, ensure_ascii=False))
