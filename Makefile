# `make demo` and `make test` set up their own environments; PYTHON chooses the interpreter.
PYTHON ?= python3
TESTS ?= tests
PYTEST_ARGS ?=
# Flax, Optax and their kin, which the tests of programs for JAX run; empty to leave them out.
ECOSYSTEM ?= yes
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
VENV := .venv/$(VERSION)
BIN := $(VENV)/bin

# Hundreds of processes import what is installed here: byte code is kept, also where the environment says otherwise.
export PYTHONDONTWRITEBYTECODE :=

# `make accelerators` compiles for chips that are not here: TARGET is tpu, tpu-v5p or cuda. It alone
# installs libtpu or NVIDIA's compiler, which come under their makers' own terms.
TARGET ?= tpu
ACCELERATORS_ARGS ?=
CHIPS := .venv/$(VERSION)-$(firstword $(subst -, ,$(TARGET)))
JAXLIB ?= 0.10.2
COMPILER_tpu := libtpu==0.0.42.*
COMPILER_cuda := jax-cuda12-plugin==$(JAXLIB) jax-cuda12-pjrt==$(JAXLIB) nvidia-cuda-nvcc-cu12

.PHONY: demo demo-distributed book test lint lines bench accelerators clean

$(VENV)/test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[test]'
	-test -z "$(ECOSYSTEM)" || $(BIN)/python -m pip install --quiet --no-compile --editable '.[ecosystem]'
	touch $@

$(VENV)/examples: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[examples]'
	touch $@

demo: $(VENV)/examples
	$(BIN)/python examples/quickstart.py

demo-distributed: $(VENV)/examples
	$(BIN)/python examples/distributed.py

$(VENV)/book: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[book]' 'jax>=0.10.2,<0.13'
	touch $@

# The weekend book and the notebooks for researchers, one of which compares with upstream, as notebooks
# and pages in build/book; no server or kernel is started.
book: $(VENV)/book
	$(BIN)/python examples/weekend/book.py build/book

test: $(VENV)/test lint
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS) $(TESTS)

lint: $(VENV)/test
	$(BIN)/ruff check minijax tests examples
	$(BIN)/ruff format --check minijax tests examples

# The package's lines by tier; fails while what a first reader needs is longer than its budget.
lines:
	$(PYTHON) -m tests.lines

bench: $(VENV)/test
	$(BIN)/python -m tests.benchmarks

$(CHIPS)/ready: pyproject.toml
	$(PYTHON) -m venv $(CHIPS)
	$(CHIPS)/bin/python -m pip install --quiet --upgrade pip
	$(CHIPS)/bin/python -m pip install --quiet --no-compile --editable . jax==$(JAXLIB) jaxlib==$(JAXLIB) $(COMPILER_$(firstword $(subst -, ,$(TARGET))))
	touch $@

accelerators: $(CHIPS)/ready
	ACCELERATOR_CONFIG=tests/h100.txt $(CHIPS)/bin/python -m tests.accelerators $(TARGET) $(ACCELERATORS_ARGS)

clean:
	rm -rf .venv build *.egg-info
