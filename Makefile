# Everything from a bare machine: Python 3.11 or newer, a C++ compiler and the package registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

# Benchmarks and some tests use real data sets when they are there.
ifneq ($(wildcard ../shared/data),)
export ONEFIT_DATA ?= $(abspath ../shared/data)
endif

CORE := $(wildcard core/*.cpp core/*.hpp) CMakeLists.txt
PACKAGE := $(shell find src -name '*.py')

.PHONY: demo test test-long lint core-test bench clean

demo: $(STAMP)
	$(BIN)/onefit demo

test: lint core-test $(STAMP)
	$(BIN)/python -m pytest -n auto

test-long: $(STAMP)
	$(BIN)/python -m pytest -n auto --long

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror core/*.cpp core/*.hpp tests/core/*.cpp
	$(BIN)/mypy
	$(BIN)/lint-imports

# The core alone, under the sanitizers: first addresses and undefined behaviour, then threads.
core-test: $(STAMP)
	for kind in address,undefined thread; do \
	  $(BIN)/cmake -S . -B build/sanitize-$$kind -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
	    -DONEFIT_PYTHON=OFF -DONEFIT_TESTS=ON -DONEFIT_SANITIZE=$$kind -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	    > build/sanitize-$$kind.log \
	  && $(BIN)/cmake --build build/sanitize-$$kind >> build/sanitize-$$kind.log \
	  && build/sanitize-$$kind/core_tests \
	  || { tail -n 50 build/sanitize-$$kind.log; exit 1; }; \
	done

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks fit

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(STAMP): $(VENV)/bin/python pyproject.toml $(CORE) $(PACKAGE)
	mkdir -p build
	$(BIN)/python -m pip install --quiet ".[test,lint]"
	touch $@

# A rival that cannot be installed here is shown as not runnable.
$(VENV)/.bench: $(STAMP)
	$(BIN)/python -m pip install --quiet ".[bench]"
	for rival in liquidSVM thundersvm thundersvm-cpu; do \
	  $(BIN)/python -m pip install --quiet $$rival || echo "$$rival does not install here"; done
	touch $@

clean:
	rm -rf build $(VENV)
