"""What the documents show is right, as far as a machine can tell (house.md §5)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from nightwarden.demo import FAULTS
from nightwarden.runtime.supervisors.rulefile import read_rules

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("tests/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(language: str) -> Iterator[tuple[Path, str]]:
    """The fenced blocks in that language, with the document each stands in."""
    for path in DOCUMENTS:
        for match in FENCE.finditer(path.read_text(encoding="utf-8")):
            if match.group(1) == language:
                yield path, match.group(2)


def prose(path: Path) -> str:
    """A document without its fenced blocks."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_link_to_a_file_leads_somewhere(path: Path) -> None:
    targets = [t.partition("#")[0] for t in LINK.findall(prose(path)) if "://" not in t]
    assert [t for t in targets if t and not (path.parent / t).exists()] == []


def test_every_document_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        path = todo.pop()
        if path in reached or path.suffix != ".md":
            continue
        reached.add(path)
        targets = (t.partition("#")[0] for t in LINK.findall(prose(path)) if "://" not in t)
        todo += [(path.parent / t).resolve() for t in targets if t]
    documents = {path for path in DOCUMENTS if path.parent.name != "tests"}
    assert [name(path) for path in sorted(documents - reached)] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_fence_is_closed(path: Path) -> None:
    assert path.read_text(encoding="utf-8").count("\n```") % 2 == 0


def test_every_python_block_runs() -> None:
    for path, code in blocks("python"):
        exec(compile(code, name(path), "exec", dont_inherit=True), {"__name__": "document"})


def test_every_yaml_block_can_be_read() -> None:
    for path, text in blocks("yaml"):
        assert YAML(typ="safe").load(text), name(path)


def test_the_answers_shown_can_be_read_as_answers() -> None:
    shown = [text for _, text in blocks("yaml") if text.startswith("- when:")]
    assert shown
    for text in shown:
        assert read_rules(text)


def test_the_tutorial_names_every_broken_page() -> None:
    text = (ROOT / "docs" / "tutorial" / "first-run.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| ([\d, ]+) \|", text, re.MULTILINE)
    assert sorted(int(n) for cell in cells for n in cell.split(",")) == sorted(FAULTS)


def test_the_licence_is_the_apache_licence_word_for_word() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert text.lstrip().startswith("Apache License\n")
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert len(text.splitlines()) == 202
