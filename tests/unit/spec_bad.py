"""Workflow files that cannot be run, with every error loading has to report, as data."""

from __future__ import annotations

Found = tuple[str, int | None, str, str]

# text → (rule, line, node, slot) of every error; lines count from the text's first one.
BAD: list[tuple[str, str, list[Found]]] = [
    ("nothing", "", [("empty-file", None, "", "")]),
    ("only a comment", "# later\n", [("empty-file", None, "", "")]),
    ("an explicit null", "---\n~\n", [("empty-file", None, "", "")]),
    ("a list", "\n- a\n", [("top-level", 2, "", "")]),
    ("a text", "hello", [("top-level", 1, "", "")]),
    ("an open bracket", "name: [a\n", [("yaml-syntax", 2, "", "")]),
    ("a tab", "nodes:\n\tpage: 1\n", [("yaml-syntax", 2, "", "")]),
    ("a star in flow style", "nodes:\n  a: {url: $inputs.u[*]}\n", [("yaml-syntax", 2, "", "")]),
    ("an at sign", "inputs:\n  u: {items: @u.txt}\n", [("yaml-syntax", 2, "", "")]),
    ("two documents", "nodes: {}\n---\nnodes: {}\n", [("yaml-syntax", 2, "", "")]),
    ("a null character", "name: a\0b\n", [("yaml-syntax", None, "", "")]),
    ("an alias without anchor", "nodes: {}\nname: *x\n", [("bad-alias", 2, "", "")]),
    ("an alias within its anchor", "nodes: {}\nui: &x [*x]\n", [("bad-alias", 2, "", "")]),
    ("a tag", "nodes: {}\nname: !!python/name:os.system x\n", [("bad-tag", 2, "", "")]),
    ("a number as a key", "nodes:\n  1: {type: t.Row}\n", [("bad-key", 2, "", "")]),
    ("a list as a key", "nodes:\n  [a]: {type: t.Row}\n", [("bad-key", 2, "", "")]),
    ("infinity", "nodes:\n  a: {type: t.Row, x: .inf}\n", [("bad-value", 2, "", "")]),
    (
        "a key twice",
        "nodes:\n  a:\n    type: t.Row\n    x: 1\n    x: 2\n  a: {type: t.Row}\n",
        [("duplicate-key", 5, "", ""), ("duplicate-key", 6, "", "")],
    ),
    (
        "keys nobody knows",
        "nodez: 1\nnodes:\n  a: {type: t.Row, run: {timeout: 1, tries: 2}}\n",
        [("unknown-key", 1, "", ""), ("unknown-key", 3, "a", "")],
    ),
    ("no nodes", "name: x\n", [("bad-value", 1, "", "")]),
    ("nodes that are none", "nodes: 3\n", [("bad-value", 1, "", "")]),
    ("another version", "version: 2\nnodes: {}\n", [("bad-version", 1, "", "")]),
    ("a version in quotes", 'version: "1"\nnodes: {}\n', [("bad-version", 1, "", "")]),
    ("a version that is true", "version: true\nnodes: {}\n", [("bad-version", 1, "", "")]),
    ("a number as a name", "name: 5\nnodes: {}\n", [("bad-value", 1, "", "")]),
    (
        "parts of the wrong kind",
        "description: []\npython: 3\nsettings: x\nprompts: []\nsupervisors: 1\nnodes: {}\n",
        [("bad-value", line, "", "") for line in range(1, 6)],
    ),
    ("a node without a type", "nodes:\n  a: {}\n", [("missing-type", 2, "a", "")]),
    ("a node that is a text", "nodes:\n  a: t.Row\n", [("bad-value", 2, "a", "")]),
    ("a type nobody knows", "nodes:\n  a: {type: t.Rov}\n", [("unknown-type", 2, "a", "")]),
    (
        "ids that cannot be",
        "nodes:\n  inputs: {type: t.Row}\n  secrets: {type: t.Row}\n  a b: {type: t.Row}\n",
        [("bad-id", line, name, "") for line, name in ((2, "inputs"), (3, "secrets"), (4, "a b"))],
    ),
    (
        "a slot that is empty",
        "nodes:\n  a: {type: t.Fetch}\n  b: {type: t.Write}\n",
        [
            ("missing-slot", 2, "a", "url"),
            ("missing-slot", 3, "b", "rows"),
            ("missing-slot", 3, "b", "path"),
        ],
    ),
    (
        "a slot that is not there",
        "nodes:\n  a:\n    type: t.Shout\n    text: x\n    tmies: 2\n    lable: x\n",
        [("unknown-slot", 5, "a", "tmies"), ("unknown-slot", 6, "a", "lable")],
    ),
    (
        "values of the wrong type",
        "nodes:\n  a:\n    type: t.Shout\n    text: 5\n    times: lots\n    loud: maybe\n",
        [
            ("property-type", 4, "a", "text"),
            ("property-type", 5, "a", "times"),
            ("property-type", 6, "a", "loud"),
        ],
    ),
    (
        "an empty value",
        "nodes:\n  a:\n    type: t.Shout\n    text:\n",
        [("property-type", 4, "a", "text")],
    ),
    (
        "a boolean for a number",
        "nodes:\n  a: {type: t.Shout, text: x, times: true}\n",
        [("property-type", 2, "a", "times")],
    ),
    (
        "a secret for a number",
        "nodes:\n  a: {type: t.Shout, text: x, times: $secrets.N}\n",
        [("property-type", 2, "a", "times")],
    ),
    (
        "promises only code can make",
        "nodes:\n  a:\n    type: t.Shout\n    text: x\n    retry_safe: true\n"
        "    run: {inline: true}\n",
        [("code-only", 5, "a", "retry_safe"), ("code-only", 6, "a", "")],
    ),
    (
        "run options out of range",
        "nodes:\n  a:\n    type: t.Row\n    run:\n      timeout: 0\n      concurrency: 1.5\n"
        "  b: {type: t.Row, run: 5}\n  c: {type: t.Row, run: {timeout: true}}\n",
        [
            ("run-options", 5, "a", ""),
            ("run-options", 6, "a", ""),
            ("run-options", 7, "b", ""),
            ("run-options", 8, "c", ""),
        ],
    ),
    (
        "a label that names no slot",
        'nodes:\n  a: {type: t.Shout, text: x, label: "{txt}"}\n'
        '  b: {type: t.Shout, text: x, label: "{"}\n',
        [("bad-label", 2, "a", ""), ("bad-label", 3, "b", "")],
    ),
    (
        "a reference that is none",
        "nodes:\n  a:\n    type: t.Shout\n    text: $x.y.z\n",
        [("bad-reference", 4, "a", "text")],
    ),
    (
        "references to what is not there",
        "inputs: {u: str}\nnodes:\n  a:\n    type: t.Row\n    x: $b\n    y: $inputs.v\n"
        "    z: $c.d[]\n",
        [
            ("unknown-node", 5, "a", "x"),
            ("unknown-input", 6, "a", "y"),
            ("unknown-node", 7, "a", "z"),
        ],
    ),
    (
        "a slot nobody puts out",
        "nodes:\n  p: {type: t.Fetch, url: x}\n  a: {type: t.Row, x: $p.titel}\n",
        [("unknown-output", 3, "a", "x")],
    ),
    (
        "a node of two slots and none named",
        "nodes:\n  p: {type: t.Split, text: x}\n  a: {type: t.Row, x: $p}\n",
        [("which-slot", 3, "a", "x")],
    ),
    (
        "two edges where one fits",
        "inputs: {u: str}\nnodes:\n  a: {type: t.Shout, text: [$inputs.u, $inputs.u]}\n",
        [("several-edges", 3, "a", "text")],
    ),
    (
        "types that cannot fit",
        "inputs: {u: int, v: str}\nnodes:\n  a: {type: t.Shout, text: $inputs.u}\n"
        "  b: {type: t.Album, titles: $inputs.v}\n  c: {type: t.Count, text: x}\n"
        "  d: {type: t.Album, titles: $c}\n",
        [
            ("edge-type", 3, "a", "text"),
            ("edge-type", 4, "b", "titles"),
            ("edge-type", 6, "d", "titles"),
        ],
    ),
    (
        "a text fanned out",
        'inputs: {u: str}\nnodes:\n  a: {type: t.Shout, text: "$inputs.u[*]"}\n',
        [("edge-type", 3, "a", "text")],
    ),
    (
        "a fan-out collected without brackets",
        'inputs: {u: "list[str]"}\nnodes:\n  a: {type: t.Row, x: "$inputs.u[*]"}\n'
        "  b: {type: t.Write, rows: $a, path: x}\n",
        [("collect-brackets", 4, "b", "rows")],
    ),
    (
        "brackets where a stream is read",
        'nodes:\n  a: {type: t.Words, text: x}\n  b: {type: t.Store, lines: "$a[]"}\n',
        [("stream-brackets", 3, "b", "lines")],
    ),
    (
        "nothing to collect",
        'nodes:\n  a: {type: t.Row, x: 1}\n  b: {type: t.Write, rows: "$a[]", path: x}\n'
        '  c: {type: t.Shout, text: x}\n  d: {type: t.Album, titles: "$c[]"}\n',
        [("nothing-to-collect", 3, "b", "rows"), ("nothing-to-collect", 5, "d", "titles")],
    ),
    (
        "a value where items belong",
        "nodes:\n  b: {type: t.Write, rows: [{a: 1}], path: x}\n",
        [("needs-edge", 2, "b", "rows")],
    ),
    (
        "two fan-outs that have nothing to do with each other",
        'inputs: {u: "list[str]", v: "list[str]"}\nnodes:\n  a:\n    type: t.Row\n'
        "    x: $inputs.u[*]\n    y: $inputs.v[*]\n",
        [("incompatible-scopes", 6, "a", "y")],
    ),
    (
        "a circle",
        "nodes:\n  a: {type: t.Row, x: $c}\n  b: {type: t.Row, x: $a}\n  c: {type: t.Row, x: $b}\n",
        [("cycle", 2, "a", "")],
    ),
    ("a node that feeds itself", "nodes:\n  a: {type: t.Row, x: $a}\n", [("cycle", 2, "a", "")]),
    (
        "nodes that control each other",
        "nodes:\n  a: {type: t.Row, controls: b}\n  b: {type: t.Row, controls: [a]}\n",
        [("cycle", 2, "a", "")],
    ),
    (
        "control of what is not there",
        "nodes:\n  a: {type: t.Row, controls: [b]}\n  c: {type: t.Row, controls: 3}\n",
        [("unknown-node", 2, "a", ""), ("bad-value", 3, "c", "")],
    ),
    (
        "inputs that cannot be",
        "inputs:\n  a: intt\n  b: {type: int, default: x}\n  c: {type: int, default: null}\n"
        "  1a: str\n  e: {tpye: str}\n  f: 5\n  g: {type: str, items: [x]}\n"
        '  h: {type: "list[str]", items: u.txt}\n  i: {type: str, default: $inputs.a}\n'
        '  j: {type: "list[int]", items: [1, x]}\n  k: {type: 3}\nnodes: {}\n',
        [
            ("input-type", 2, "", ""),
            ("input-default", 3, "", ""),
            ("input-default", 4, "", ""),
            ("bad-id", 5, "", ""),
            ("unknown-key", 6, "", ""),
            ("bad-value", 7, "", ""),
            ("input-items", 8, "", ""),
            ("input-items", 9, "", ""),
            ("input-default", 10, "", ""),
            ("input-default", 11, "", ""),
            ("input-type", 12, "", ""),
        ],
    ),
    (
        "outputs that cannot be",
        "nodes:\n  p: {type: t.Fetch, url: x}\noutputs:\n  a: $q\n  b: $p.no\n  c: 5\n"
        "  d: $inputs.x\n",
        [
            ("unknown-node", 4, "", ""),
            ("unknown-output", 5, "", ""),
            ("bad-output", 6, "", ""),
            ("bad-output", 7, "", ""),
        ],
    ),
    (
        "a slot beside the type and under properties",
        "nodes:\n  a:\n    type: t.Row\n    x: 1\n    properties:\n      x: 2\n",
        [("duplicate-key", 6, "a", "x")],
    ),
]
