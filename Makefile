# make run: the app on http://127.0.0.1:8501    make test: lint, types and the tests
# make test-slow: the tests that take long: compiler, every family, benchmarks
# make unit: the quick tests: none that loads, no pages, browser, benchmarks or checkpoints
PYTHON ?= python3
BIN := .venv/bin
# Bytecode is kept, even where the environment forbids it: without it every worker, server and
# command of the tests compiles all modules again: 4 s of each worker for the tests alone.
export PYTHONDONTWRITEBYTECODE :=
# Workers take work from each other; torch has one thread in each, or they fight for cores.  Three
# on two cores, because browser tests wait for a fifth of their time.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --dist worksteal
.PHONY: run test test-slow unit lint types bench checkpoints clean

run: .venv/run.stamp
	$(BIN)/streamlit run app.py

test: lint types
	$(PYTEST) -n 3 -m "not slow and not compiles"

test-slow: .venv/dev.stamp
	$(PYTEST) -n 2 -m "slow or compiles"

unit: .venv/dev.stamp
	$(PYTEST) -n 2 --ignore tests/browser --ignore tests/pages --ignore tests/benchmarks \
		--ignore tests/demo/test_checkpoints.py -m "not loads and not slow and not compiles"

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev.stamp
	$(BIN)/mypy

bench: .venv/dev.stamp
	$(BIN)/python -m benchmarks

checkpoints: .venv/run.stamp
	$(BIN)/python -m tools.demo_training.train

clean:
	rm -rf .venv *.egg-info

# The schema of Every Eval Ever, which installs on Python 3.12 alone, is read from its package; a
# test that needs it is skipped where there is none.
# The stamps hold the time of the last install: it is repeated only after a list has changed.
# `-e` installs this folder as it is, with the command .venv/bin/stagescope.
.venv/made.stamp:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "StageScope needs Python 3.11 or newer: make PYTHON=python3.x")'
	$(PYTHON) -m venv .venv
	touch $@

.venv/run.stamp: .venv/made.stamp pyproject.toml requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.txt -e .
	touch $@

.venv/dev.stamp: .venv/run.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.txt -e '.[dev]'
	-$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps \
		--only-binary=:all: --python-version 3.12 -d .venv/schemas every-eval-ever==0.3.0
	touch $@
