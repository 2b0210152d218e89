# Each target does its own set-up, in .venv, with nothing but Python 3.10 to 3.12, make and git on the machine.
# PYTHON=/path/to/python chooses the interpreter, VENV another folder. Set-up is done again when pyproject.toml changes.

VENV ?= .venv
EXTRAS ?= examples,s3,spark,table,test,dev
PYTHON ?=
READY := $(VENV)/.ready
BIN := $(VENV)/bin
DOCS_READY := $(VENV)/.docs-ready

.DEFAULT_GOAL := help
.PHONY: help demo setup test local cluster fast lint spec docs wheel clean

help:
	@echo "make demo   run the main job: Spark and a stream on 336,776 real flights, with a report and a chart"
	@echo "make test   lint, types and the whole test suite"
	@echo "make fast   the tests of every day: no Ray, none slow"
	@echo "make local  all tests that need no Ray; make cluster: those on Ray"
	@echo "make lint   ruff and mypy"
	@echo "make spec   bring docs/flink-semantics.md up to date with the tests"
	@echo "make docs   build the site from docs/ into build/site, without network"
	@echo "make wheel  build dist/rayflink-*.whl, which cluster.yaml installs on every node"

$(READY): pyproject.toml
	@if [ -n "$(PYTHON)" ] || ! "$(BIN)/python" -c 'import sys, pip; \
	        sys.exit(not (3, 10) <= sys.version_info < (3, 13))' 2>/dev/null; then \
	    python=$$(PYTHON="$(PYTHON)" .ci/find-python) && "$$python" -m venv --clear "$(VENV)" || exit 1; \
	fi; \
	echo "setting up $(VENV) with $$("$(BIN)/python" --version): 1.6 GB, which takes minutes"
	@"$(BIN)/python" -m pip install -qq --disable-pip-version-check -e ".[$(EXTRAS)]"
	@touch "$@"

$(DOCS_READY): $(READY)
	@"$(BIN)/python" -m pip install -qq --disable-pip-version-check -e ".[docs]"
	@touch "$@"

demo: $(READY)
	@"$(BIN)/python" examples/flight_pipeline.py

setup: $(READY) $(DOCS_READY)

lint: $(READY)
	@"$(BIN)/ruff" check .
	@"$(BIN)/mypy"

# All parts run even where one fails: one run shows everything.
test: $(READY) $(DOCS_READY)
	@failed=0; for part in lint local cluster; do $(MAKE) --no-print-directory $$part || failed=1; done; exit $$failed

local: $(READY) $(DOCS_READY)
	@"$(BIN)/python" -m pytest -m "not ray" --durations=12 --durations-min=5

cluster: $(READY) $(DOCS_READY)
	@"$(BIN)/python" -m pytest -m ray --durations=12 --durations-min=5

fast: $(READY)
	@"$(BIN)/python" -m pytest -q -m "not slow and not ray"

spec: $(READY)
	@"$(BIN)/python" -m tests.spec_table --write

docs: $(DOCS_READY)
	@NO_MKDOCS_2_WARNING=1 "$(BIN)/python" -m mkdocs build --strict --quiet
	@echo "the site: build/site/index.html; to search in it: python3 -m http.server --directory build/site"

wheel: $(READY)
	@"$(BIN)/python" -m build --wheel --outdir dist .

clean:
	rm -rf "$(VENV)" build dist rayflink.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
