# One command per chore. Assumed: Python >= 3.11, make, and a reachable package index.
.DEFAULT_GOAL := help
.PHONY: help setup run test test-slow test-gpu test-frameworks chaos check bench requirements fmt clean lock web api words screenshots

# Tests start hundreds of servers: each must not compile all of its modules again.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= $(shell scripts/find-python)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install --quiet
RUN_READY := $(VENV)/.ready-to-run
TEST_READY := $(VENV)/.ready-to-test
OUTCOMES := build/outcomes
WEB := src/runyard/web/index.html
WEB_SOURCES := $(shell find web/src web/public -type f ! -name components.d.ts 2>/dev/null) web/index.html web/vite.config.ts web/package-lock.json
# One more than there are cores: most tests wait for something most of their time.
JOBS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1 )))
PYTEST := $(BIN)/python -m pytest $(PYTEST_ARGS)

help:
	@echo "make run           set up, start the server and a demo job, print the address (RUN_ARGS='--port 9000')"
	@echo "make test          set up and run every test that is not slow"
	@echo "make test-slow     the rest; with FRAMEWORKS_PYTHON=a python with torch also test-frameworks"
	@echo "make test-gpu      those that need a real GPU (and a python3 with torch)"
	@echo "make test-frameworks  real torch, transformers, Lightning, Keras, also on Ray (FRAMEWORKS_PYTHON=a python that has them)"
	@echo "make chaos         10 minutes of kill -9 of anything under load (CHAOS_SECONDS, CHAOS_SEED)"
	@echo "make check         format, lint, types, import contracts, documents"
	@echo "make bench         measure speed against floors and the peers that are installed"
	@echo "make web           build the web page (npm run dev in web/ for working on it)"
	@echo "make api words     make again what the web page takes from the server: its types, its words"
	@echo "make screenshots   the pictures of docs/images, taken of a server with demo trainings"
	@echo "make requirements  each requirement, its tests, and how they ended"
	@echo "make setup fmt lock clean"

# Files, not phony: what is there already is not done again.
$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; none was found on the PATH" >&2; exit 1; }
	"$(PYTHON)" -m venv $(VENV) || { echo "the venv module is missing; on Debian: apt-get install python3-venv" >&2; exit 1; }

$(RUN_READY): requirements.lock requirements-build.lock pyproject.toml | $(VENV)/bin/python
	$(PIP) --require-hashes -r requirements-build.lock
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(TEST_READY): requirements-dev.lock scripts/system-packages $(RUN_READY)
	$(PIP) --require-hashes -r requirements-dev.lock
	scripts/system-packages
	@touch $@

setup: $(TEST_READY)

$(WEB): $(WEB_SOURCES) scripts/build-web
	scripts/build-web

web: $(WEB)

# What the page knows of the server; `make check` compares them with what is committed.
api: $(RUN_READY) $(WEB)
	$(BIN)/runyard openapi > web/openapi.json
	npm --prefix web run --silent api

words: $(RUN_READY)
	$(BIN)/python scripts/web_words.py

# Needs Chromium (RUNYARD_CHROMIUM names another one than /usr/bin/chromium).
screenshots: $(RUN_READY) $(WEB)
	$(BIN)/python scripts/pictures/take.py

run: $(RUN_READY) $(WEB)
	@exec $(BIN)/python scripts/run.py $(RUN_ARGS)

# Exit status 5 of pytest means that the selection is empty, which is no failure here.
test: $(TEST_READY) $(WEB)
	npm --prefix web test --silent
	npm --prefix web run --silent e2e
	$(PYTEST) -m "serial and not slow and not gpu and not frameworks" --outcomes=$(OUTCOMES)/test-serial.json || test $$? -eq 5
	$(PYTEST) -m "not slow and not serial and not gpu and not frameworks" -n $(JOBS) --dist loadgroup --outcomes=$(OUTCOMES)/test.json

test-slow: $(TEST_READY)
	$(PYTEST) -m slow --outcomes=$(OUTCOMES)/test-slow.json || test $$? -eq 5
	test -z "$(FRAMEWORKS_PYTHON)" || $(MAKE) --no-print-directory test-frameworks

test-gpu: $(TEST_READY)
	$(PYTEST) -m gpu --outcomes=$(OUTCOMES)/test-gpu.json

test-frameworks: $(TEST_READY)
	$(PYTEST) -m frameworks --outcomes=$(OUTCOMES)/test-frameworks.json

chaos: $(TEST_READY)
	$(PYTEST) -s -m slow tests/chaos

check: $(TEST_READY) $(WEB)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	npm --prefix web run --silent types
	$(PYTEST) -q tests/architecture

requirements: $(TEST_READY)
	@$(BIN)/python scripts/requirements_table.py $(OUTCOMES)

bench: $(RUN_READY) $(WEB)
	$(BIN)/python benchmarks/run_all.py $(BENCH_ARGS)

fmt: $(TEST_READY)
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format .

# Pins every package with its hashes and without naming an index, so that any mirror serves.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
lock: $(RUN_READY)
	test -x $(BIN)/uv || $(PIP) uv
	$(LOCK) --group build -o requirements-build.lock
	$(LOCK) pyproject.toml --extra postgres -c requirements-build.lock -o requirements.lock
	$(LOCK) pyproject.toml --extra postgres --extra ray --extra sweeps --extra dev -c requirements.lock -c requirements-build.lock -o requirements-dev.lock

clean:
	rm -rf $(VENV) build dist src/runyard/web web/node_modules .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis benchmarks/results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
