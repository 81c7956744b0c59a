"""A supervisor from a file of its own, or out of a workflow's: what commands are given.

    watches: [fix]                     or    supervisors:
    monitors: ["repeat=3"]                     watchdog: {…}
                                             prompts: {…}

Read next: `spec/supervisors.py`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from nightwarden.errors import Problem, SpecError
from nightwarden.spec.document import read_document
from nightwarden.spec.findings import Findings, suggestion
from nightwarden.spec.supervisors import SupervisorSpec, read_supervisors
from nightwarden.spec.workflow import Workflow

_ABOUT_NODES = "C190"


def read_supervisor(
    text: str, *, file: str, name: str = ""
) -> tuple[SupervisorSpec, tuple[Problem, ...]]:
    """The supervisor in a file, the only one or the one of that name, and warnings about it.

    Raises `SpecError` for a file that holds none.
    """
    findings = Findings(file)
    document = read_document(text, findings)
    data = document.data if document is not None else None
    if document is not None and not isinstance(data, Mapping):
        findings.error("top-level", "the file holds no supervisor", "begin with monitors:")
    findings.raise_errors()
    assert isinstance(data, Mapping)
    workflow = _standing_alone(data)
    found = read_supervisors(workflow, findings)
    findings.raise_errors()
    problems = tuple(p for p in findings.report() if p.rule != _ABOUT_NODES)
    return _chosen(found, name, file), problems


def _standing_alone(data: Mapping[str, Any]) -> Workflow:
    """A workflow of nothing but the file's supervisors."""
    blocks = data.get("supervisors")
    if not isinstance(blocks, Mapping):
        blocks = {"supervisor": {k: v for k, v in data.items() if k not in ("name", "prompts")}}
        if isinstance(data.get("name"), str):
            blocks = {data["name"]: blocks["supervisor"]}
    prompts = data.get("prompts")
    return Workflow(
        name="supervisors",
        nodes=(),
        edges=(),
        supervisors=blocks,
        prompts=prompts if isinstance(prompts, Mapping) else {},
    )


def _chosen(found: tuple[SupervisorSpec, ...], name: str, file: str) -> SupervisorSpec:
    names = [spec.name for spec in found]
    if name and name in names:
        return found[names.index(name)]
    if len(found) == 1 and not name:
        return found[0]
    if name:
        message, remedy = f"there is no supervisor {name!r}", suggestion(name, names, what="names")
    elif found:
        message, remedy = f"there are several: {', '.join(names)}", "say which one with --name"
    else:
        message, remedy = "there is no supervisor in it", "begin with monitors:, or supervisors:"
    raise SpecError([Problem(rule="no-supervisor", message=message, remedy=remedy, file=file)])


def safe_name(name: str) -> str:
    """A file name for a supervisor's name, its own for each."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:60]
    if plain == name and name:
        return plain
    return f"{plain}-{hashlib.blake2b(name.encode('utf-8', 'replace'), digest_size=4).hexdigest()}"
