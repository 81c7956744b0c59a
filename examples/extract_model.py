"""A stand-in for a model, to try `extract.yaml` without a key: it speaks OpenAI's protocol.

    python examples/extract_model.py            at http://127.0.0.1:8123, until Ctrl-C

It reads no better than a few lines of Python can: the title is the subject, the longest sentence
the quotation. For two documents it behaves as models do on a bad day: of one it sends prose
around the JSON, of the other it invents the quotation.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import threading

from nightwarden.testing.model_server import ModelServer, Request, Say

PORT = 8123


def read(request: Request) -> Say:
    """What is replied to a document."""
    text = str(request.body["messages"][-1]["content"])
    title, *lines = text.splitlines()
    sentences = [s for line in lines for s in re.findall(r"[A-Z][^.]*\.", line)]
    reply = {"subject": title, "quote": max(sentences, key=len, default="")}
    if "dough" in title:
        return Say(f"Here is what I found:\n{json.dumps(reply)}")
    if "sea" in title:
        return Say(json.dumps({**reply, "quote": "The moon is made of cheese."}))
    return Say(f"```json\n{json.dumps(reply)}\n```")


def main() -> None:
    """Serve until interrupted."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else PORT
    with ModelServer([read], port=port) as server:
        print(f"a stand-in for a model at {server.base_url}/v1", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
