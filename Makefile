# The commands of this repository; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
BIN := .venv/bin
SAMPLE ?= build/sample
LAKE ?= build/lake
DATA ?= ../shared/data
GALLERY ?= build/gallery
TORCH ?=
PEER ?=
OPUS := $(BIN)/opus --lake $(LAKE)

# Everything that is needed lies in the install: nothing is asked of a model hub at run time.
export HF_HUB_OFFLINE := 1
export TRANSFORMERS_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false

# Images of containers often set it. Then every process compiles all modules anew: 1.7 s of CPU where it loads generation.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run bench test test-fast test-nightly coverage lint types imports lock sbom audit docs ui gallery clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

run: .venv/.installed $(SAMPLE)/.written ## install, write the sample, rebuild, train, generate, show the ranked workflows
	@$(OPUS) rebuild --history $(SAMPLE)/history
	$(OPUS) train --backend intention
	$(OPUS) generate --intakes $(SAMPLE)/intakes
	$(OPUS) best --top 1 --truth $(SAMPLE)/truth.json
	$(BIN)/python scripts/parts_lines.py benchmarks/results/parts.json
	echo "sample     $(abspath $(SAMPLE))"
	echo "lake       $(abspath $(LAKE))"
	echo "SQL views  $(abspath $(LAKE))/views.sql  (duckdb -init $(LAKE)/views.sql)"
	echo "next       $(OPUS) status | explain WORKFLOW | query | ui"

# DuckDB's binding lists what is alive when the interpreter ends, behind pytest's closing line; it tells nothing of the tests.
# Without a restart: after the crash of a worker, pytest-xdist may wait for ever for the tests that it had.
PYTEST := $(BIN)/pytest --numprocesses 2 --dist loadfile --max-worker-restart 0
WITHOUT_LEAKS := 2> >(sed -e '/nanobind/d' -e '/^ - leaked /d' -e '/^ - \.\.\. skipped remainder/d' >&2)

FAST := not spark and not model and not nightly and not long and not data

test: .venv/.installed ## the tests
	@JAVA_HOME="$$(scripts/find_java.sh)"; export JAVA_HOME
	$(PYTEST) --no-loadscope-reorder $(WITHOUT_LEAKS)

test-fast: .venv/.installed ## the tests that need neither Spark nor a model nor real data nor a second of their own, for the inner loop
	@$(PYTEST) --hypothesis-profile "inner loop" -m "$(FAST)" $(WITHOUT_LEAKS)

test-nightly: .venv/.installed ## the campaigns: fuzzing, brute force, kills at every point, costly properties at length
	@JAVA_HOME="$$(scripts/find_java.sh)"; export JAVA_HOME
	$(PYTEST) --hypothesis-profile nightly -m "nightly or (long and not spark and not model)" $(WITHOUT_LEAKS)

coverage: .venv/.installed ## which lines the fast tests run, as a table by package; each line in build/coverage
	@$(PYTEST) -m "$(FAST)" --cov --cov-report html:build/coverage --cov-report json:build/coverage.json $(WITHOUT_LEAKS)
	$(BIN)/python scripts/coverage_by_package.py build/coverage.json

lint: .venv/.installed ## style (ruff)
	@$(BIN)/ruff check .

types: .venv/.installed ## types (mypy)
	@$(BIN)/mypy

imports: .venv/.installed ## who may import whom (import-linter)
	@$(BIN)/lint-imports

lock: .venv/.installed ## pin requirements.lock anew from pyproject.toml, with the hash of every file
	@$(BIN)/uv pip compile -q --no-header --no-annotate --generate-hashes pyproject.toml --extra dev --extra docs -o requirements.lock

sbom: .venv/.installed ## a software bill of materials of what is locked, CycloneDX as JSON: build/sbom.json
	@mkdir -p build
	$(BIN)/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --of JSON --output-reproducible -o build/sbom.json
	echo "sbom       $(abspath build/sbom.json)"

audit: .venv/.installed ## known vulnerabilities of what is locked; where the index cannot be asked, it says so and fails
	@$(BIN)/python scripts/audit.py requirements.lock

docs: .venv/.installed ## write docs/reference from the code, then the site into build/site; a broken link is an error
	@PYTHONPATH=. $(BIN)/python scripts/reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	echo "site       $(abspath build/site)/index.html"

ui: .venv/.installed ## the Dagster UI on the sample's lake
	@OPUS_HISTORY=$(abspath $(SAMPLE))/history OPUS_INTAKES=$(abspath $(SAMPLE))/intakes $(OPUS) ui

gallery: .venv/.installed ## the first plan of every real log in DATA as pictures with checks: build/gallery/gallery.html
	@JAVA_HOME="$$(scripts/find_java.sh)"; export JAVA_HOME
	$(BIN)/python benchmarks/gallery.py $(DATA) $(GALLERY)

bench: .venv/.installed ## speed beside peers, in ten minutes, into benchmarks/results and docs/pictures; PEER=a python that has polars, pm4py, rustxes
	@JAVA_HOME="$$(scripts/find_java.sh)"; export JAVA_HOME
	$(BIN)/python benchmarks/speed.py --events 62500 125000 250000 500000 1000000 10000000 \
	    $(if $(PEER),--peer $(PEER)) $(if $(wildcard $(DATA)/event_logs),--event-logs $(DATA)/event_logs)
	PYTHONPATH=. $(BIN)/python benchmarks/bulk.py --counts 25 50 100 200 400 --results benchmarks/results
	$(BIN)/python benchmarks/exponents.py
	$(BIN)/python benchmarks/pictures.py

clean: ## remove what `make run` wrote; the install stays
	@rm -rf build

# A new lock means a new install; `uv pip sync` takes the project itself away, so it is put back each time.
.venv/.installed: requirements.lock pyproject.toml
	@start=$$SECONDS
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	test -x $(BIN)/uv || $(BIN)/pip install -q uv
	lock=requirements.lock; backend=()
	if [ "$(TORCH)" = cpu ]; then  # the lock without what only PyTorch's CUDA build needs, and without hashes: the CPU build has others
	    mkdir -p build && grep -vE '^(nvidia|cuda)-|^triton==|^ ' requirements.lock | sed 's/ *\\$$//' >build/requirements-cpu.lock
	    lock=build/requirements-cpu.lock backend=(--torch-backend cpu)
	fi
	$(BIN)/uv pip sync -q --python $(BIN)/python "$${backend[@]}" $$lock
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps -e .
	touch $@
	echo "installed in $$((SECONDS - start)) s"

# Rewritten when the code that writes it changed.
$(SAMPLE)/.written: .venv/.installed $(wildcard opus_pipelines/quality/sample/*.py)
	@rm -rf $(SAMPLE)
	$(BIN)/opus sample $(SAMPLE)
	touch $@

.ONESHELL:
