#!/usr/bin/env bash
# Prints the newest set of versions that fits pyproject.toml, its development group included.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${VENV:-.venv}/bin/python

echo "# What development and the tests use: 'make lock' wrote it, 'make setup' keeps to it."
echo "# Users of the package are bound by pyproject.toml only."
"$python" -m pip install -qq --dry-run --ignore-installed --report - --editable . --group dev |
    "$python" -c '
import json, sys
found = [entry["metadata"] for entry in json.load(sys.stdin)["install"]]
for name, version in sorted((m["name"].lower(), m["version"]) for m in found):
    if name != "nightwarden":
        print(f"{name}=={version}")
'
