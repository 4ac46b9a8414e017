# Two commands: `make demo` runs the main job, `make test` checks everything. Both set themselves up.
# `make test EXTRAS=peers` installs that extra, too, and runs the tests that need it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS ?=
comma := ,
READY := $(VENV)/ready$(if $(EXTRAS),-$(subst $(comma),-,$(EXTRAS)))
# Threads of BLAS gain nothing on matrices of a few hundred rows, and parallel tests share the cores.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test lint types unit format benchmark docs gallery dist clean

demo: $(READY)
	$(BIN)/crashbo demo

test: lint types unit

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

unit: $(READY)
	$(BIN)/python -m pytest -n auto

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

benchmark: $(READY)
	for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --site-dir crashbo-docs

gallery: $(READY)
	for script in examples/*.py; do name=$$(basename $$script .py); echo "== $$name"; \
	    $(BIN)/python $$script --output docs/images/gallery/$$name.png || exit 1; done

dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build --no-isolation

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev$(if $(EXTRAS),$(comma)$(EXTRAS))]"
	touch $@

clean:
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache
