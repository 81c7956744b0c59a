"""Steps of `implement.yaml`: a copy of the repository to work in, and its checks.

The checks are run here and not by the agent, with the checking script as it was at the start: an
agent that mends the checks instead of the code gets nowhere.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from nightwarden import Context, NodeError, node

REPOSITORY = Path(__file__).parent / "implement" / "repository"
CHECK = "check.py"
LONGEST_S = 60


@dataclass(frozen=True)
class Checked:
    """What the checks said."""

    passed: bool
    said: str


@node
def prepare(workspace: Path, ctx: Context) -> Path:
    """Make the workspace and put the files of the repository into it, as they were."""
    folder = ctx.workdir / workspace
    folder.mkdir(parents=True, exist_ok=True)
    for file in sorted(REPOSITORY.glob("*.py")):
        (folder / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    return workspace


@node(retry_safe=True)
def check(workspace: Path, report: str, ctx: Context) -> Checked:
    """Run the checks on what is in the workspace, after the agent has reported."""
    ctx.log.info(f"checking after: {report}")
    folder = ctx.workdir / workspace
    (folder / CHECK).write_text((REPOSITORY / CHECK).read_text(encoding="utf-8"), encoding="utf-8")
    try:
        done = subprocess.run(
            [sys.executable, "-B", CHECK],
            cwd=folder,
            env={},
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NodeError(f"{CHECK} took more than {LONGEST_S} s", code="check-timeout") from error
    return Checked(done.returncode == 0, (done.stdout + done.stderr).strip())
