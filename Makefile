# Two commands for a fresh machine with Python 3.11, git and make: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
CODE := src tests docs/results/scripts docs/site packaging
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check format results docs drawings notebooks torture lock licences audit clean

demo: .venv/.demo  ## ERD, FT and the joint bound on the embedded data set, from nothing to a table and a picture
	$(BIN)/episodica run quickstart --out runs

test: check  ## formatting, lint, types and tests; two processes with a thread each, for two cores
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

check: .venv/.dev  ## the quick half of `make test`: formatting, lint and types
	$(BIN)/ruff format --check $(CODE) && $(BIN)/ruff check $(CODE) && $(BIN)/pyright

format: .venv/.dev
	$(BIN)/ruff format $(CODE) && $(BIN)/ruff check --fix $(CODE)

results: .venv/.dev  ## the pages and curves of docs/results, from their templates and the committed runs
	$(BIN)/python docs/results/scripts/pages.py && $(BIN)/python docs/results/scripts/pictures.py

torture: .venv/.dev  ## 10,000 hostile inputs, and every command above a disk that fails, tears, dies or loses power at every operation, 1,000 times killed, and two at once; hours, or MINUTES=65; less with INPUTS=300 KILLS=30
	cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m torture $(if $(MINUTES),--minutes $(MINUTES)) $(if $(INPUTS),--inputs $(INPUTS)) $(if $(KILLS),--kills $(KILLS))

docs: .venv/.dev  ## the documentation site, into site/; `make docs SERVE=1` shows it at http://127.0.0.1:8000/ as you write
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(if $(SERVE),serve,build) --strict

drawings: .venv/.dev  ## the pictures of docs/concepts.md
	$(BIN)/python docs/site/drawings.py

notebooks: .venv/.dev  ## run the notebooks of docs/notebooks and keep what they print
	$(BIN)/python docs/site/run_notebooks.py

lock: .venv/supply  ## requirements-dev.lock from constraints.txt: the hash of every file of every pinned version; needs the network
	grep '==' constraints.txt | grep -v -e '^#' -e '^torch==' | .venv/supply/bin/uv pip compile --quiet --generate-hashes --no-deps --no-annotate \
	  --no-emit-index-url --python $(BIN)/python --custom-compile-command 'make lock' --output-file requirements-dev.lock -

licences: .venv/.dev  ## docs/licences.md, as the installed packages say it
	$(BIN)/python packaging/licences.py

audit: .venv/supply  ## known vulnerabilities of the locked versions; needs the network
	.venv/supply/bin/pip-audit --strict --requirement requirements-dev.lock --disable-pip --require-hashes || \
	  { echo "Either a version above has a known fault, or the data could not be reached ('could not be audited'): this needs the network."; exit 1; }

clean:
	rm -rf .venv site

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("episodica needs Python 3.11 or newer: make PYTHON=python3.11") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv .venv

.venv/.demo: .venv/bin/python pyproject.toml constraints.txt
	@echo "Setting up .venv (PyTorch is the largest part; about a minute)"
	$(PIP) --editable '.[report,photos,web]'
	touch $@

.venv/.dev: .venv/bin/python pyproject.toml constraints.txt
	@echo "Setting up .venv (PyTorch is the largest part; about a minute)"
	$(PIP) --editable '.[all,dev,docs]'
	touch $@

.venv/supply: .venv/bin/python
	.venv/bin/python -m venv $@
	$@/bin/python -m pip install --quiet --disable-pip-version-check uv pip-audit
