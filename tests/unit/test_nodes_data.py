"""data.Record and data.Map: records, and expressions that cannot reach or run far."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import pytest
from pydantic import TypeAdapter, ValidationError

from nightwarden.errors import NodeError
from nightwarden.nodes.builtin._expressions import Expression
from nightwarden.nodes.builtin.data import map_, record

ITEM = {
    "name": "Blue kettle",
    "price": Decimal("10.50"),
    "n": 3,
    "tags": ["steel", "kitchen"],
    "lines": [{"sku": "a", "n": 0}, {"sku": "b", "n": 2}],
    "when": date(2026, 3, 1),
    "none": None,
}


@dataclass(frozen=True)
class Page:
    url: str
    status: int = 200

    def secret(self) -> str:
        return "no"


def test_a_record_is_its_inputs_in_their_order() -> None:
    """kernel.md §4: `data.Record(**fields)` builds a row from several slots."""
    assert record(b=1, a=[2]) == {"b": 1, "a": [2]}
    assert list(record(b=1, a=2)) == ["b", "a"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("item.name", "Blue kettle"),
        ('item["name"]', "Blue kettle"),
        ("item.price * 1.2", Decimal("12.600")),
        ("item.n ** 2 + 7 // 2 - 5 % 3 - -1", 11),
        ("2 + 3 * 4 == 14 and not item.none", True),
        ("'steel' in item.tags", True),
        ("item.none is None", True),
        ("1 < item.n <= 3", True),
        ("item.name if item.n > 5 else 'few'", "few"),
        ("item.tags[0] + '-' + item.tags[-1][:3]", "steel-kit"),
        ("[line.sku for line in item.lines if line.n]", ["b"]),
        ("sum(line.n for line in item.lines)", 2),
        ("{line.sku: line.n for line in item.lines}", {"a": 0, "b": 2}),
        ("{'name': item.name, 'n': [1, (2, 3)]}", {"name": "Blue kettle", "n": [1, (2, 3)]}),
        ("item.name.upper()", "BLUE KETTLE"),
        ("upper(item.name)", "BLUE KETTLE"),
        ("item.name.replace('Blue', 'Red').split()", ["Red", "kettle"]),
        ("', '.join(item.tags)", "steel, kitchen"),
        ("get(item, 'colour', 'none')", "none"),
        ("item.get('name')", "Blue kettle"),
        ("sorted(item.tags, reverse=True)", ["steel", "kitchen"]),
        ("len(item.tags) > 1", True),
        ("max(1, item.n)", 3),
        ("round(item.price * 3) + int('4')", 36),
        ("decimal('1.1') + 0.2", Decimal("1.3")),
        ("sum([decimal('0.1'), 0.2])", Decimal("0.3")),
        ("str(item.n) + 'x'", "3x"),
        ("'-' * 3", "---"),
    ],
)
def test_an_expression_computes_with_what_is_in_an_item(expression: str, value: object) -> None:
    assert map_(expression, item=ITEM) == value


@pytest.mark.parametrize("expression", ["join(', ', item.tags)", "item.tags[1]", "keys(item)[0]"])
def test_functions_and_methods_are_the_same(expression: str) -> None:
    assert map_(expression, item=ITEM) in ("steel, kitchen", "kitchen", "name")


def test_further_inputs_are_known_by_their_names() -> None:
    assert map_("a + b.n > limit", a=1, b={"n": 2}, limit=2) is True


def test_fields_of_records_are_reached_and_nothing_else_of_them() -> None:
    page = Page("https://x.test")
    assert map_("item.url + str(item.status)", item=page) == "https://x.test200"
    with pytest.raises(NodeError, match="no 'secret' in it, there is url, status"):
        map_("item.secret", item=page)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("item.nothing", "no 'nothing' in it, there is name, price"),
        ("item['nothing']", "no 'nothing' in it"),
        ("item.name.nothing", "it is a str without parts"),
        ("item.tags[7]", "no item 7, there are 2"),
        ("item.n[0]", "int cannot be indexed"),
        ("other + more", "no value for more, other; given: item"),
        ("item.n / 0", "division"),
        ("item.n + item.name", "unsupported operand"),
        ("int('x')", "invalid literal"),
        ("item.name.upper", "no 'upper' in it"),
        ("sum(item.tags)", "adds numbers, not str"),
        ("'%s' % item.n", "cannot take str modulo int"),
        ("[1] * 3", "cannot multiply list and int"),
        ("str(item.tags)", "takes a single value"),
    ],
)
def test_an_expression_without_a_value_fails_in_one_clear_line(expression: str, words: str) -> None:
    with pytest.raises(NodeError) as caught:
        map_(expression, item=ITEM)
    assert caught.value.code == "expression"
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "1 +",
        "a b",
        "x = 1",
        "1; 2",
        "import os",
        "lambda: 1",
        "[*x]",
        "{1, 2}",
        "(y := 1)",
        "f'{item}'",
        "f'{1:>999999999}'",
        "await x",
        "x if y",
        "1\n2",
        "\0",
        "(" * 500,
        "open('x')",
        "eval('1')",
        "getattr(item, 'x')",
        "type(item)",
        "item.__class__",
        "item.name.format(1)",
        "_x",
        "[x for x.y in item]",
        "upper(**item)",
        "upper(*item)",
        "(upper)()()",
        "[].append(1)",
        "1 << 2",
        "~1",
        "a @ b",
        "[a for a in item for b in item for c in item for d in item]",
        "1" * 2001,
        "-" * 1999 + "1",
    ],
)
def test_a_mistake_in_an_expression_is_found_when_the_workflow_is_loaded(expression: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Expression).validate_python(expression)
    with pytest.raises(NodeError) as caught:
        map_(expression, item=ITEM)
    assert caught.value.code == "expression"


@pytest.mark.parametrize(
    "expression",
    [
        "9 ** 9 ** 9",
        "(9 ** 3000) ** 3000",
        "'x' * 10 ** 9",
        "10 ** 10 ** 10",
        "replace('a' * 900000, 'a', 'bb' * 1000)",
        "join('z', ['x' * 500000, 'y' * 500000])",
        "[x for x in '" + "x" * 300 + "' for y in '" + "x" * 300 + "']",
        "'x' * 900000 + 'x' * 900000",
        "int(decimal('1e9999'))",
        "sum(a * b for a in item for b in item for c in item)",
    ],
)
def test_what_takes_too_long_or_makes_too_much_ends_soon(expression: str) -> None:
    began = time.process_time()
    with pytest.raises(NodeError):
        map_(expression, item=list(range(500)))
    assert time.process_time() - began < 2


def test_the_same_expression_can_run_for_many_items() -> None:
    assert [map_("item * 2", item=n) for n in range(1000)] == list(range(0, 2000, 2))
