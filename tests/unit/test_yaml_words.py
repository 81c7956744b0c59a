"""What a YAML parser complains of is said in an author's words, at the line to be mended."""

from __future__ import annotations

import pytest

from nightwarden.errors import SpecError
from nightwarden.nodes.registry import Registry
from nightwarden.spec.load import load


def told(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        load(text, catalog=Registry(), file="w.yaml")
    (problem,) = caught.value.problems
    return str(problem).replace(" [yaml-syntax]", "")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'name: "t\nnodes:\n  a: {type: flow.Value, value: 1}\n',
            "w.yaml:1: a quote is opened here and never closed — close it",
        ),
        (
            "name: t\nnodes:\n  a: {type: flow.Value, value: 1\n  b: {type: flow.Value}\n",
            "w.yaml:4: in the { } begun on line 3, a comma or } is expected — close it, or quote",
        ),
        (
            "name: t\nnodes:\n  a:\n    value: [1, 2\n  b:\n    type: flow.Value\n",
            "w.yaml:5: in the [ ] begun on line 4, a comma or ] is expected — close it, or quote",
        ),
        (
            "name: t\nnodes:\n  a:\n    type: flow.Value\n   value: 1\n",
            "w.yaml:5: this line does not go on with the entries begun on line 3: its indent is "
            "another one — give entries that belong together the same indent",
        ),
        (
            "name: t\nnodes\n  a: {type: flow.Value}\n",
            "w.yaml:2: a key without a colon — write it as in name: value",
        ),
        (
            'name: t\nnodes:\n  a: {type: file.ReadText, path: "C:\\data"}\n',
            "w.yaml:3: \\d means nothing in double quotes — write two backslashes for one, or put "
            "the value in single quotes",
        ),
    ],
)
def test_an_unfinished_file_is_told_of_in_plain_words(text: str, line: str) -> None:
    assert told(text) == line
