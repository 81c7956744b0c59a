"""The workflow of `poster.yaml`, built in Python: the same graph, the same checks.

    nightwarden.run(build(), inputs={"prompt": "a harbour in the morning"})

Run as a script it writes the canonical form, which is `poster.json`.
"""

from __future__ import annotations

import json

import nightwarden as nw
from nightwarden.spec.workflow import Workflow


def build() -> Workflow:
    """Have a poster painted, check it, enlarge it, and publish it once."""
    purpose = "Has a poster painted, checks it, enlarges it, and publishes it once."
    faults = "none, busy, gate, after_spend, publish_lost_answer, or notify_down"
    with nw.workflow("poster", description=purpose, python=["poster_nodes.py"]) as w:
        prompt = w.input(
            "prompt",
            "str",
            default="a lighthouse over quiet water",
            description="What the poster shows",
        )
        outbox = w.input(
            "outbox", "path", default="outbox.jsonl", description="The outside; a line is a post"
        )
        notes = w.input(
            "notes", "path", default="notifications.txt", description="Where people are told"
        )
        fault = w.input("fault", "str", default="none", description=faults)

        description = w.add("poster_nodes.Enhance", id="description", prompt=prompt)
        image = w.add("poster_nodes.Image", id="image", description=description, fault=fault)
        takes, best = image.slot("takes"), image.slot("best")

        contrast = w.add("poster_nodes.Contrast", id="contrast", takes=takes, choice=best)
        good = w.add("data.Map", id="good", expression="contrast >= 0.4", contrast=contrast)
        gate = w.add(
            "flow.Assert",
            id="gate",
            value=best,
            condition=good,
            message="the picture has too little contrast to be printed",
        )

        upscale = w.add("poster_nodes.Upscale", id="upscale", takes=takes, choice=gate, fault=fault)
        publish = w.add(
            "poster_nodes.Publish",
            id="publish",
            poster=upscale,
            caption=prompt,
            key=upscale.slot("digest"),
            outbox=outbox,
            fault=fault,
        )
        w.add(
            "poster_nodes.Notify",
            id="notify",
            receipt=publish,
            caption=prompt,
            notes=notes,
            fault=fault,
        )
    return w.build()


if __name__ == "__main__":
    print(json.dumps(build().canonical(), indent=2, ensure_ascii=False))
