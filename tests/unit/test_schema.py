"""The JSON Schema of the workflow file: what loads fits it, and typing errors do not."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from spec_nodes import CATALOG, loaded
from test_load import PAGES

from nightwarden.spec.document import read_document
from nightwarden.spec.findings import Findings
from nightwarden.spec.schema import workflow_schema

SCHEMA = workflow_schema(CATALOG)
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)


def data_of(text: str) -> Any:
    document = read_document(text, Findings(), "yaml")
    assert document is not None
    return document.data


def test_the_schema_is_a_schema() -> None:
    jsonschema_rs.meta.validate(SCHEMA)


def test_it_is_plain_json_and_always_the_same() -> None:
    assert json.dumps(SCHEMA) == json.dumps(workflow_schema(CATALOG))


def test_every_node_type_is_in_it() -> None:
    assert SCHEMA["$defs"]["node"]["properties"]["type"]["enum"] == list(CATALOG.names())


def test_the_slots_of_a_type_are_told_with_what_they_take() -> None:
    slots = SCHEMA["$defs"]["node:t.Shout"]["properties"]
    assert {"text", "times", "loud", "run", "label", "properties"} <= set(slots)
    assert slots["times"]["anyOf"][1] == {"type": "integer"}
    assert slots["times"]["description"] == "Takes int."


GOOD = [
    PAGES.replace('"2"', "2"),
    "nodes: {}",
    "inputs: {a: 'list[str]', b: {type: int, default: 3}}\nnodes: {}",
    'nodes:\n  a: {type: t.Row, anything: {deep: [1]}, other: "$b[]"}\n',
    "nodes:\n  a: {type: t.Shout, properties: {text: x}, times: 2}\n",
    "nodes:\n  a: {type: t.Pick, values: [$b, $c.d]}\n",
    "nodes:\n  a: {type: t.Any, left: [$b, $c.d]}\n",
    "nodes:\n  - {id: a, type: t.Shout, text: x}\nedges: []\n",
]
BAD = [
    "nodez: {}\nnodes: {}",
    "version: 2\nnodes: {}",
    "name: x",
    "nodes:\n  a: {type: t.Nope}\n",
    "nodes:\n  a: {}\n",
    "nodes:\n  1a: {type: t.Row}\n",
    "nodes:\n  a: {type: t.Shout, txet: x}\n",
    "nodes:\n  a: {type: t.Shout, times: many}\n",
    "nodes:\n  a: {type: t.Shout, retry_safe: true}\n",
    "nodes:\n  a: {type: t.Row, run: {timeout: 0}}\n",
    "nodes:\n  a: {type: t.Row, run: {tries: 1}}\n",
    "inputs: {a: {tpye: int}}\nnodes: {}",
]


@pytest.mark.parametrize("text", GOOD)
def test_what_is_well_formed_fits(text: str) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(data_of(text))] == []


@pytest.mark.parametrize("text", BAD)
def test_what_is_mistyped_does_not_fit(text: str) -> None:
    assert not VALIDATOR.is_valid(data_of(text))


def test_the_canonical_form_fits_too() -> None:
    assert VALIDATOR.is_valid(loaded(PAGES).canonical())
