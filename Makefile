# make demo: install the environment, then run the whole pipeline on the embedded sample.  make test: install what the suite needs, then run it.
# make test-slow: the tests of twenty seconds and more, after make test.
# make test-cluster: hosts made of network namespaces, ssh and a real Slurm; as root, with iproute2, openssh-server, pdsh, slurmctld,
# slurmd, slurm-client, munge; tests whose tools are missing are skipped with the reason.
# make mutants: the share of changed operators and constants that the tests notice; a random sample of all packages.
# make coverage: which tests execute which line, in .coverage and durations.log; make mutants then runs these tests.
# make docs: the site of the documentation, in site/; a broken link is an error.  make package: the release, in dist/.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --constraint

.PHONY: demo test test-demo test-slow test-cluster lint docs package coverage mutants clean

demo: $(VENV)/.installed
	$(BIN)/malmoi run smoke
	@echo "the command in this shell:  source $(BIN)/activate"

test: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder

test-demo: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m demo

test-slow: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder -m slow

test-cluster: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -p no:xdist -rP -m cluster tests/launch

coverage: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadfile --no-loadscope-reorder \
	  --cov --cov-context=test --cov-report= --durations=0 > durations.log

mutants: $(VENV)/.installed-dev
	$(BIN)/python -m tests.mutants $(if $(wildcard .coverage),--coverage .coverage --durations durations.log)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

package: $(VENV)/.installed-dev
	$(BIN)/python -m build

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) constraints.txt --editable '.[train]'
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt constraints-dev.txt | $(BIN)/python
	$(INSTALL) constraints-dev.txt --editable '.[dev]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml constraints.txt constraints-dev.txt | $(BIN)/python
	$(INSTALL) constraints-dev.txt --editable '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) runs build dist site *.egg-info
