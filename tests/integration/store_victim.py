"""A process that records and is killed: one child a line of its input, so that many are cheap.

Input: `URL RUN_ID SEED`. The child opens the store, creates the run or goes on with it, appends
events and prints a line for each number a barrier has returned for. The parent prints `+PID` at
its start and `-` once it has ended.
"""

from __future__ import annotations

import os
import random
import sys

from nightwarden.errors import StoreError
from nightwarden.store import RunBusy, open_store


def main() -> None:
    """Serve lines until there are no more."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            url, run_id, seed = line.split()
            write(url, run_id, int(seed))
            os._exit(0)
        say(f"+{child}")
        os.waitpid(child, 0)
        say("-")


def write(url: str, run_id: str, seed: int) -> None:
    """Append until killed, or for 3,000 events; acknowledge what is durable."""
    chance = random.Random(seed)
    with open_store(url) as store:
        try:
            run = store.create(run_id)
        except RunBusy:
            raise
        except StoreError:
            run = store.reopen(run_id)
        seq = run.last_seq
        for _ in range(3000):
            seq += 1
            digest = run.keep(b"%d" % (seq % 7) * 20_000) if chance.random() < 0.02 else ""
            text = "x" * chance.randrange(400)
            run.append(
                b'{"type":"log","seq":%d,"text":"%s","blob":"%s"}'
                % (seq, text.encode(), digest.encode())
            )
            if chance.random() < 0.2:
                run.barrier()
                say(str(seq))
        run.close()
        say(str(seq))


def say(text: str) -> None:
    """One line, in one write."""
    os.write(1, text.encode() + b"\n")


if __name__ == "__main__":
    main()
