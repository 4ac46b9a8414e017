# Two commands: `make demo` runs the main job, `make test` checks everything. Both set themselves up.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Threads of BLAS gain nothing on matrices of a few hundred rows, and parallel tests share the cores.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test lint types unit format benchmark clean

demo: $(VENV)/ready
	$(BIN)/crashbo demo

test: lint types unit

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready
	$(BIN)/mypy

unit: $(VENV)/ready
	$(BIN)/python -m pytest -n auto

format: $(VENV)/ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

benchmark: $(VENV)/ready
	for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
