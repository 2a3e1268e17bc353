# groklab's workshop. Everything happens inside this folder: the environment in .venv, caches in .cache, results in runs.

PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
# An additional package index for torch, such as PyTorch's index of builds for CPU (see CONTRIBUTING.md).
TORCH_INDEX ?=
WORKERS ?= 2

BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --quiet --constraint constraints.txt \
	$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export HYPOTHESIS_STORAGE_DIRECTORY := $(CURDIR)/.cache/hypothesis
export MPLCONFIGDIR := $(CURDIR)/.cache/matplotlib
export TORCHINDUCTOR_CACHE_DIR := $(CURDIR)/.cache/inductor
export TRITON_CACHE_DIR := $(CURDIR)/.cache/triton

.DEFAULT_GOAL := help
.PHONY: help run test slow check format bench clean

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s%s\n", $$1, $$2 }' Makefile

run: .venv/installed ## the quickstart: five initializations grok modular addition, with a report in runs/
	@mkdir -p runs
	$(BIN)/groklab run initialization --quick --lab sqlite:///runs/groklab.db --out runs/quickstart

test: .venv/installed-dev ## the tests that take minutes, with coverage
	@$(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal --cov

slow: .venv/installed-dev ## the tests that take longer
	@$(BIN)/pytest -m slow --timeout 3600

check: .venv/installed-dev ## format, lint, types and the direction of imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo --cache-dir .cache/imports

format: .venv/installed-dev ## put the code into the form that `make check` asks for
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: .venv/installed ## the race against a plain PyTorch loop, on this machine
	$(BIN)/groklab bench

clean: ## remove the environment and every cache; results in runs/ stay
	rm -rf .venv .cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo 'groklab needs Python 3.11 or newer, and found none; name one: make PYTHON=/path/to/python3.12 …' >&2; exit 1; }
	@echo "groklab: making .venv with $$('$(PYTHON)' --version)"
	@'$(PYTHON)' -m venv .venv

.venv/installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo 'groklab: installing PyTorch and what else it needs into .venv (once; some minutes)'
	@$(PIP) --editable .
	@touch $@

.venv/installed-dev: .venv/installed
	@echo 'groklab: installing the tools that test and check it'
	@$(PIP) --editable '.[dev]'
	@touch $@
