"""A script: runs command lines one after the other in one process, for tests of many of them.

Reads a JSON list of `{"cwd", "arguments", "env", "stdin", "files"}` from standard input, and writes
a JSON list of `{"code", "out", "err"}`. Each command has standard streams of its own, as files.
`files` are put there just before it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def played(row: dict[str, Any]) -> dict[str, Any]:
    """One command, with what it printed and how it ended."""
    from nightwarden.cli.main import main

    os.chdir(row["cwd"])
    before = dict(os.environ)
    os.environ.update(row["env"])
    for name, text in row["files"].items():
        Path(name).write_text(text, encoding="utf-8")
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as given,
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as err,
    ):
        given.write(row["stdin"])
        given.seek(0)
        sys.stdin, sys.stdout, sys.stderr = given, out, err
        try:
            code = main(row["arguments"])
        finally:
            sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
            os.environ.clear()
            os.environ.update(before)
        out.seek(0)
        err.seek(0)
        return {"code": code, "out": out.read(), "err": err.read()}


if __name__ == "__main__":
    rows = json.load(sys.stdin)
    json.dump([played(row) for row in rows], sys.stdout)
