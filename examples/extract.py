"""The workflow of `extract.yaml`, built in Python: the same graph, the same checks.

    nightwarden.run(build(), inputs={"documents": ["notes.txt"]})

Run as a script it writes the canonical form, which is `extract.json`.
"""

from __future__ import annotations

import json

import nightwarden as nw
from nightwarden.spec.workflow import Workflow

SCHEMA = {
    "type": "object",
    "properties": {
        "subject": {"type": "string", "description": "What it is about, in a few words"},
        "quote": {"type": "string", "description": "One sentence of the document, word for word"},
    },
    "required": ["subject", "quote"],
    "additionalProperties": False,
}


def build() -> Workflow:
    """Read documents with a model, check what it found, and write one table."""
    purpose = "Reads documents with a model, checks what it found, and writes one table."
    with nw.workflow("extract", description=purpose) as w:
        documents = w.input("documents", "list[path]", description="The texts to read")
        model = w.input(
            "model", "str", default="ollama:llama3.2", description="The model that reads them"
        )
        csv = w.input("csv", "path", default="facts.csv", description="Where the table goes")

        text = w.add("file.ReadText", id="text", path=documents.each())
        facts = w.add(
            "llm.Extract",
            id="facts",
            text=text,
            model=model,
            instructions="Say what the document is about, and quote the sentence that shows it "
            "best.",
            schema=SCHEMA,
            max_tokens=300,
            max_cost_usd=0.05,
        )
        quoted = w.add(
            "data.Map", id="quoted", expression="item.quote in text", item=facts, text=text
        )
        checked = w.add(
            "flow.Assert",
            id="checked",
            value=facts,
            condition=quoted,
            message="the quotation is not in the document",
        )
        w.add("file.WriteCsv", id="table", rows=checked.collect(), path=csv)
    return w.build()


if __name__ == "__main__":
    print(json.dumps(build().canonical(), indent=2, ensure_ascii=False))
