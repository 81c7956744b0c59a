"""What the how-to pages on loops, pairs and control show, run as it stands there."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import nightwarden

import nightwarden as nw


@pytest.fixture
def garden(root: Path, tmp_path: Path) -> Path:
    page = (root / "docs" / "how-to" / "repeat-pair-and-control.md").read_text(encoding="utf-8")
    for language, name in (("yaml", "garden.yaml"), ("python", "garden_nodes.py")):
        block = page.partition(f"```{language}\n")[2].partition("```")[0]
        (tmp_path / name).write_text(block, encoding="utf-8")
    return tmp_path


def test_the_garden_is_watered_paired_and_priced(garden: Path) -> None:
    workflow = nw.load(garden / "garden.yaml", trust=True)
    result = nw.run(workflow, {"beds": [10, 55], "gardeners": ["ann", "bob"]})
    assert result.outputs["plan"] == "ann: 50; bob: 75 (from 5.0 to 100.0)"
    assert list(result.outputs["price"]) == [5.0, 100.0]


def test_unequal_sides_stop_the_garden_as_the_page_says(garden: Path) -> None:
    inputs = ("--input", "beds=[10, 55]", "--input", 'gardeners=["ann"]')
    done = nightwarden("run", "garden.yaml", "--trust", *inputs, cwd=garden)
    assert done.code == 1
    assert "pair: right ended after 1 item, left has more" in done.out
