# `make demo` and `make test` set up their own environments; PYTHON chooses the interpreter.
PYTHON ?= python3
TESTS ?= tests
PYTEST_ARGS ?=
# Flax, Optax and their kin, which the tests of programs for JAX run; empty to leave them out.
ECOSYSTEM ?= yes
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
VENV := .venv/$(VERSION)
BIN := $(VENV)/bin

.PHONY: demo demo-distributed test lint bench clean

$(VENV)/test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	-test -z "$(ECOSYSTEM)" || $(BIN)/python -m pip install --quiet --editable '.[ecosystem]'
	touch $@

$(VENV)/examples: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[examples]'
	touch $@

demo: $(VENV)/examples
	$(BIN)/python examples/quickstart.py

demo-distributed: $(VENV)/examples
	$(BIN)/python examples/distributed.py

test: $(VENV)/test lint
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS) $(TESTS)

lint: $(VENV)/test
	$(BIN)/ruff check minijax tests examples
	$(BIN)/ruff format --check minijax tests examples

bench: $(VENV)/test
	$(BIN)/python -m tests.benchmarks

clean:
	rm -rf .venv build *.egg-info
