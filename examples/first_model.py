"""A stand-in for a model that decides, for the tutorial: it speaks OpenAI's protocol.

    python examples/first_model.py              at http://127.0.0.1:8123, until Ctrl-C

It knows one thing: a line without a price has nothing to add up, and is skipped. About anything
else it says that the run had better stop.
"""

from __future__ import annotations

import contextlib
import sys
import threading

from nightwarden.testing.model_server import Call, ModelServer, Request

PORT = 8123


def decide(request: Request) -> Call:
    """What is answered to a failure."""
    if "sold out" in request.text:
        verdict = {"action": "skip"}
        why = "what is sold out has no price"
    else:
        verdict = {"action": "fail", "reason": "nobody knows what this is"}
        why = "I know of shops only"
    diagnosis = "the line does not end with a price"
    return Call("decide", {"diagnosis": diagnosis, "verdict": verdict, "rationale": why})


def main() -> None:
    """Serve until interrupted."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else PORT
    with ModelServer([decide], port=port) as server:
        print(f"a stand-in for a model at {server.base_url}/v1", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
