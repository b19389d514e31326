# Everything runs in one virtual environment, .venv, made on first use from python3 and constraints.txt.
VENV := .venv
BIN := $(VENV)/bin
# The first of these that is Python 3.11 or newer makes the environment; make PYTHON=/path/to/python names another.
PYTHON ?= python3 python3.14 python3.13 python3.12 python3.11
# The folder that holds MNIST/raw/.
ROOT ?= data
# Where make run leaves its results; another configuration needs another folder.
OUT ?= runs/main
# Repetitions computed, and mutants tried, side by side; no result depends on it.
N_JOBS ?= 2
# Those that `make figures` reproduces; all of them unless some are named.
RECIPES ?=

# Plugins that other packages bring are not used, and take each process seconds to load.
PYTEST = PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(BIN)/python -m pytest -p xdist -p timeout -n 2 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help run test test-all golden mutants stress lint figures docs bench mnist clean
# Two targets must not install into the environment at the same time.
.NOTPARALLEL:

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-8s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.installed-launchers ## compare three learners on the bundled digits, k=4: table and curve
	$(BIN)/budgetreg run -m algo=aemr,aelr,lasso k=4 n_jobs=$(N_JOBS) out='$(OUT)'
	$(BIN)/budgetreg plot '$(OUT)'
	@echo "The curves are drawn in $(OUT)/curves.png"

test: $(VENV)/.installed-dev ## run each behaviour's test once (two to three minutes)
	$(PYTEST) -m "not slow"

test-all: test ## run the slow tests too: all learners, recipes and launchers (the tests on MNIST run by name)
	$(PYTEST) -m slow

mutants: $(VENV)/.installed-dev ## break the protocol, or an estimate, in one place at a time: do the tests notice? (10 to 20 minutes)
	$(BIN)/python scripts/mutants.py -j $(N_JOBS)

golden: $(VENV)/.installed-dev ## before and after a change of the layout: do 60 commands print and write the same bytes? (3 to 6 minutes)
	$(BIN)/python scripts/golden.py -j $(N_JOBS)

stress: $(VENV)/.installed-dev ## kill, damage, starve and mistype hundreds of times: is anything wrong or left? (10 to 20 minutes)
	$(BIN)/python scripts/stress.py -j $(N_JOBS)

lint: $(VENV)/.installed-dev ## check style, types and imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/python scripts/layers.py --check

figures: $(VENV)/.installed-launchers ## reproduce the figures and judge their claims, in results/ (what is stale needs MNIST in ROOT, and hours)
	$(BIN)/budgetreg reproduce n_jobs=$(N_JOBS) dataset.root='$(ROOT)' $(RECIPES)

docs: $(VENV)/.installed-docs ## build the documentation into docs/_build/html; a warning is an error (two to three minutes)
	$(BIN)/sphinx-build -W --keep-going -q -E -b html docs docs/_build/html
	@echo "The first page is docs/_build/html/index.html"

bench: $(VENV)/.installed-dev ## time cores, growth, backends and launchers (a quarter of an hour)
	$(BIN)/python scripts/bench.py

mnist: $(VENV)/.installed-mnist ## fetch MNIST into ROOT (data), or check and prepare the files that are there
	$(BIN)/budgetreg fetch mnist_3v5 dataset.root='$(ROOT)'

clean: ## remove the environment, caches and builds; runs/, results/ and data/ stay
	rm -rf $(VENV) build dist docs/_build docs/gallery docs/reference/api .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per extra of pyproject.toml: installed once, and again when the requirements change. Compiling is left to
# compileall because pip uses one core for it, and includes every package's tests and all of torch, which no run imports.
# The versions of constraints.txt may not exist for a Python that is newer than they are: then the newest ones that do.
PIP_INSTALL = $(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check
$(VENV)/.installed-%: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "installing budgetreg[$*] into $(VENV) ..."
	@$(PIP_INSTALL) -c constraints.txt -e '.[$*]' || { \
	  $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 14))' && \
	  echo "The versions of constraints.txt cannot be installed with $$($(BIN)/python --version): installing others;" \
	    "results may differ from those in results/" >&2 && \
	  $(PIP_INSTALL) -e '.[$*]'; \
	}
	@$(BIN)/python -m compileall -qq -j 0 -x '/(tests|torch|sympy)/' $(VENV)/lib || true
	@touch $@

$(BIN)/pip:
	@tried=; \
	for python in $(PYTHON); do \
	  if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "making $(VENV) with $$("$$python" --version)"; \
	    exec "$$python" -m venv $(VENV); \
	  fi; \
	  version=$$("$$python" --version 2>/dev/null) || version="not found"; \
	  tried="$${tried:+$$tried, }$$python ($$version)"; \
	done; \
	echo "budgetreg needs Python 3.11 or newer, and none of these is: $$tried;" \
	  "install one, or say where it is: make PYTHON=/path/to/python3" >&2; \
	exit 1
