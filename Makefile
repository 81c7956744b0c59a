# `make demo` shows it, `make test` proves it; each sets up what it needs in .venv first.
# The tests run in as many processes as there are processors; WORKERS=0 runs them in one.

VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# A test that hangs is named, with the stack of every thread, and ends the run. Tracebacks are the
# interpreter's own: pytest's parse the source, which CPython 3.11 cannot do in two threads at once.
WORKERS ?= auto
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal --tb=native -rf -o faulthandler_exit_on_timeout=true --durations=5 --durations-min=2
SHELL := /bin/bash

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test lint types law unit integration test-claude fresh bench soak drawn mutants pages lock format clean

help:  ## what can be made
	@sed -n 's/^\([a-z-]*\):.*##\(.*\)/  make \1\t\2/p' Makefile | expand -t 20

setup: $(READY)  ## the package and its tools in .venv

$(READY): pyproject.toml requirements-dev.lock tools/setup.sh
	@VENV=$(VENV) tools/setup.sh
	@touch $@

demo: setup  ## 200 real pages, some of them broken, under supervision
	@$(BIN)/nightwarden demo

test: lint types law unit integration  ## everything; some seven minutes

lint: setup  ## style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup  ## static types, strictly
	$(BIN)/mypy

law: setup  ## imports point one way
	$(BIN)/lint-imports --no-logo

unit: setup  ## the pure parts, with the same examples every time; under a minute
	$(PYTEST) -o faulthandler_timeout=60 --hypothesis-profile=ci tests/unit

integration: setup  ## servers, files, processes, terminals
	$(PYTEST) -o faulthandler_timeout=180 --hypothesis-profile=ci tests/integration

test-claude: setup  ## the real Claude Code on a model of this machine; installs it, some 400 MB
	@$(BIN)/python -m pip install -qq --editable '.[claude]' || \
	echo '!! Claude Code cannot be installed here: what needs it is NOT tested' >&2
	$(PYTEST) -rfs -o faulthandler_timeout=180 tests/claude

fresh:  ## what a newcomer does with what is committed: clone, demo, test
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	git clone --quiet . "$$dir/nightwarden" && \
	$(MAKE) -C "$$dir/nightwarden" VENV=.venv demo test

bench: setup  ## how fast, as ratios to a plain asyncio pipeline
	$(BIN)/python benchmarks/engine.py

soak: setup  ## random graphs, failures and cancels through the real driver; ten minutes
	$(BIN)/python tests/soak/run.py --minutes $(or $(MINUTES),10) --seed $(or $(SEED),0)

drawn: setup  ## many more random examples of the unit tests; takes long
	$(BIN)/pytest --hypothesis-profile=soak tests/unit

mutants: setup  ## small wrongs in the kernel, to see which of them no test minds; ten minutes
	$(BIN)/python tests/mutants/mutate.py --minutes $(or $(MINUTES),10) --seed $(or $(SEED),0) $(if $(RESULTS),--results $(RESULTS))

pages: setup  ## the pages that are written from the code: docs/reference/events.md
	$(BIN)/python tools/events_reference.py
	$(BIN)/python tools/eval_reference.py

lock: setup  ## pin the newest versions of everything again
	tools/lock.sh > requirements-dev.lock.new && mv requirements-dev.lock.new requirements-dev.lock

format: setup  ## put the source into its form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## remove what was built, .venv included
	rm -rf $(VENV) .demo-cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
