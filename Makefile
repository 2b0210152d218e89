# Each target does its own set-up, in .venv, with nothing but Python 3.10 to 3.13, make and git on the machine
# (3.14 is allowed, but untested: docs/quickstart.md).
# PYTHON=/path/to/python chooses the interpreter, VENV another folder. Set-up is done again when pyproject.toml changes.

VENV ?= .venv
EXTRAS ?= examples,s3,spark,table,test,dev
PYTHON ?=
SLICE ?= all
SOAK ?=
READY := $(VENV)/.ready
BIN := $(VENV)/bin
DOCS_READY := $(VENV)/.docs-ready
SEED ?= 1
ROWS ?= 100

# Modules are compiled when they are imported first, and kept: the tests start a thousand processes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo setup test local cluster fast soak times lint spec mutants docs wheel clean

help:
	@echo "make demo   run the main job: Spark and a stream on 336,776 real flights, with a report and a chart"
	@echo "make test   lint, types and the whole test suite"
	@echo "make fast   the tests of every day: no Ray, none slow"
	@echo "make local  all tests that need no Ray; make cluster: those on Ray"
	@echo "make soak   the long tests: wide seeds and whole matrices; SLICE=3/12 for one part of twelve"
	@echo "make lint   ruff and mypy"
	@echo "make times  write down how much CPU time the tests take, which tests/suite/time_budget.yaml limits"
	@echo "make spec   bring docs/flink-semantics.md up to date with the tests"
	@echo "make mutants  break what ROWS=$(ROWS) rows of that page name, drawn by SEED=$(SEED), and see their tests fail"
	@echo "make docs   build the site from docs/ into build/site, without network"
	@echo "make wheel  build dist/rayflink-*.whl, which cluster.yaml installs on every node"

$(READY): pyproject.toml
	@if [ -n "$(PYTHON)" ] || ! "$(BIN)/python" -c 'import sys, pip; \
	        sys.exit(not (3, 10) <= sys.version_info < (3, 15))' 2>/dev/null; then \
	    python=$$(PYTHON="$(PYTHON)" .ci/find-python) && "$$python" -m venv --clear "$(VENV)" || exit 1; \
	fi; \
	echo "setting up $(VENV) with $$("$(BIN)/python" --version): 1.6 GB, which takes minutes"
	@.ci/install "$(BIN)/python" -e ".[$(EXTRAS)]"
	@touch "$@"

$(DOCS_READY): $(READY)
	@.ci/install "$(BIN)/python" -e ".[docs]"
	@touch "$@"

demo: $(READY)
	@"$(BIN)/python" examples/flight_pipeline.py

setup: $(READY) $(DOCS_READY)

lint: $(READY)
	@"$(BIN)/ruff" check .
	@"$(BIN)/mypy"

# All parts run even where one fails: one run shows everything. Jobs on Ray wait for processes to start, most of the time;
# lint and the other tests get the processors' idle time meanwhile, and what they print comes at the end.
test: $(READY) $(DOCS_READY)
	@failed=0; log=$$(mktemp) || exit 1; \
	nice -n 19 $(MAKE) --no-print-directory --keep-going lint local >"$$log" 2>&1 & beside=$$!; \
	trap 'kill $$beside 2>/dev/null' INT TERM; \
	$(MAKE) --no-print-directory cluster || failed=1; \
	wait $$beside || failed=1; cat "$$log"; rm -f "$$log"; exit $$failed

# SOAK=3/12 runs a part of the long tests beside those of every day; OPTIONS are of pytest.
local: $(READY) $(DOCS_READY)
	@"$(BIN)/python" -m pytest $(OPTIONS) -m "not ray" $(if $(SOAK),--soak $(SOAK)) --durations=12 --durations-min=5

cluster: $(READY) $(DOCS_READY)
	@"$(BIN)/python" -m pytest $(OPTIONS) -m ray $(if $(SOAK),--soak $(SOAK)) --durations=30 --durations-min=5

# Tests without Ray first, which are divided among the processors.
soak: $(READY) $(DOCS_READY)
	@failed=0; for part in "not ray" ray; do \
	    "$(BIN)/python" -m pytest -m "soak and $$part" --soak $(SLICE) || [ $$? = 5 ] || failed=1; \
	done; exit $$failed

# PART=1/3 takes a third of the files.
fast: $(READY)
	@"$(BIN)/python" -m pytest $(OPTIONS) -q -m "not slow and not ray" $(if $(PART),--part $(PART))

# What tests/suite/time_budget.yaml allows is held against it. MARK="not ray" leaves those on Ray as they were written.
# `make test OPTIONS=--write-times` writes it too.
times: $(READY) $(DOCS_READY)
	@for part in $(if $(MARK),"$(MARK)","not ray" ray); do \
	    "$(BIN)/python" -m pytest -q -m "$$part" --write-times || exit 1; \
	done

spec: $(READY)
	@"$(BIN)/python" -m tests.spec.spec_table --write

# Not part of `make test`: a sample of 100 rows takes most of an hour.
mutants: $(READY)
	@"$(BIN)/python" -m tests.mutants --seed "$(SEED)" --rows "$(ROWS)"

docs: $(DOCS_READY)
	@NO_MKDOCS_2_WARNING=1 "$(BIN)/python" -m mkdocs build --strict --quiet
	@echo "the site: build/site/index.html; to search in it: python3 -m http.server --directory build/site"

wheel: $(READY)
	@"$(BIN)/python" -m build --wheel --outdir dist .

clean:
	rm -rf "$(VENV)" build dist rayflink.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
