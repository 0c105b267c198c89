PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready
# On all cores. The tests of a file share fixtures, so one worker does them.
PYTEST := $(BIN)/python -m pytest --numprocesses logical --dist loadfile
# What was run with the oldest versions.
OLDEST := tests/functional tests/augment tests/samplers tests/test_methods.py tests/cli/test_fit.py \
	tests/ensemble tests/runs tests/integrations/sklearn

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-oldest fuzz coverage check format bench pictures findings field tables docs docs-check wheel surface clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/ -/'

setup: $(READY)  ## create .venv with everything that was tested

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $@

demo: $(READY)  ## compare five methods on a built-in table, write a report
	$(BIN)/regaug compare --quick

test: $(READY)  ## run the tests and the examples in the docs, on all cores
	$(PYTEST) -m "not slow and not site"

test-all: $(READY)  ## the same with the slow tests
	$(PYTEST)

test-oldest:  ## run a part of the tests with the oldest versions that are promised, in .venv-oldest
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --constraint constraints-oldest.txt --editable ".[dev]"
	$(VENV)-oldest/bin/python -m pytest -m "not slow and not site" $(OLDEST)

fuzz: $(READY)  ## read changed tables, models, studies and checkpoints for 15 minutes
	$(BIN)/python -m tests.fuzz --seconds 900

coverage: $(READY)  ## run the tests, say which lines of src none of them reaches
	$(PYTEST) --cov --cov-report=term-missing:skip-covered -m "not slow"

check: $(READY)  ## formatting, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)  ## mend formatting and what lint can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)  ## measure the budgets, write benchmarks/results/
	$(BIN)/python -m benchmarks

pictures: $(READY)  ## draw the pictures of the pages of methods
	$(BIN)/python -m docs.pictures

findings: $(READY)  ## write docs/reproduction.md from the measured tables
	$(BIN)/python -m regaug.reproduction.page benchmarks/results/reproduction docs/reproduction.md

field: $(READY)  ## write docs/field.md and the figures of the methods from what was measured
	$(BIN)/python -m benchmarks.atlas.field_page
	$(BIN)/python -m benchmarks.tables
	$(BIN)/python -m benchmarks.method_pages

tables: $(READY)  ## write the tables of README.md and docs/ from the code and what was measured
	$(BIN)/python -m benchmarks.tables

docs: $(DOCS_READY)  ## build the documentation in site/, warnings are errors
	$(BIN)/sphinx-build --fail-on-warning --keep-going --jobs 2 --doctree-dir build/docs/doctrees docs site

docs-check: $(DOCS_READY)  ## test the site that make docs has built: links, requests, headings, contrast
	$(BIN)/python -m pytest -m site tests/docs tests/browser

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev,docs]"
	@touch $@

wheel: $(READY)  ## build wheel and source distribution in dist/
	$(BIN)/python -m build --no-isolation

surface: $(READY)  ## write tests/api_surface.json: the public names and how they are called
	$(BIN)/python -m tests.surface

clean:  ## remove everything that make created
	rm -rf $(VENV) $(VENV)-oldest runs site build dist docs/api docs/api.rst docs/examples src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
