# Everything from a bare machine: Python 3.11 or newer, a C++ compiler and the package registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGE := $(VENV)/.package
TOOLS := $(VENV)/.tools
OLDEST := .venv-oldest

# Benchmarks and some tests use real data sets when they are there.
ifneq ($(wildcard ../shared/data),)
export ONEFIT_DATA ?= $(abspath ../shared/data)
endif

SOURCES := pyproject.toml CMakeLists.txt $(wildcard core/*.cpp core/*.hpp) $(shell find src -name '*.py*' -not -name '*.pyc')

.PHONY: demo test test-oldest test-long lint core-test bench campaign clean

demo: $(PACKAGE)
	$(BIN)/onefit demo

test: lint core-test $(TOOLS)
	$(BIN)/python -m pytest -n auto

# The tests against the oldest supported scikit-learn and its companions.
test-oldest: $(OLDEST)/.tools
	$(OLDEST)/bin/python -m pytest -n auto

test-long: $(TOOLS)
	$(BIN)/python -m pytest -n auto --long

lint: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror core/*.cpp core/*.hpp tests/core/*.cpp tests/core/*.hpp
	$(BIN)/mypy
	$(BIN)/lint-imports

# The core alone, under the sanitizers: first addresses and undefined behaviour, then threads.
core-test: $(TOOLS)
	mkdir -p build
	for kind in address,undefined thread; do \
	  $(BIN)/cmake -S . -B build/sanitize-$$kind -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
	    -DONEFIT_PYTHON=OFF -DONEFIT_TESTS=ON -DONEFIT_SANITIZE=$$kind -DONEFIT_EXACT_BUFFERS=ON \
	    -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	    > build/sanitize-$$kind.log \
	  && $(BIN)/cmake --build build/sanitize-$$kind >> build/sanitize-$$kind.log \
	  && build/sanitize-$$kind/core_tests \
	  || { tail -n 50 build/sanitize-$$kind.log; exit 1; }; \
	done

# Problems drawn at random, for MINUTES; with SANITIZE=address,undefined or SANITIZE=thread under
# sanitizers, where every buffer is an allocation of its own.
MINUTES ?= 10
SEED ?=
SANITIZE ?=
CAMPAIGN := build/campaign-$(SANITIZE)

campaign: $(if $(SANITIZE),$(CAMPAIGN)/package/.built,$(TOOLS))
	$(BIN)/python -m campaign --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) \
	  $(if $(SANITIZE),--sanitize $(SANITIZE)) --json build/campaign/last.json $(CAMPAIGN_FLAGS)

$(CAMPAIGN)/package/.built: $(TOOLS)
	$(BIN)/python -m pip install --quiet "nanobind>=3.1,<4"
	$(BIN)/cmake -S . -B $(CAMPAIGN) -G Ninja -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
	  -DPython_EXECUTABLE=$(abspath $(BIN))/python \
	  -Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir) \
	  -DONEFIT_SANITIZE=$(SANITIZE) -DONEFIT_EXACT_BUFFERS=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	  > build/campaign-$(SANITIZE).log
	$(BIN)/cmake --build $(CAMPAIGN) --target _core >> build/campaign-$(SANITIZE).log \
	  || { tail -n 50 build/campaign-$(SANITIZE).log; exit 1; }
	rm -rf $(CAMPAIGN)/package
	mkdir -p $(CAMPAIGN)/package
	cp -r src/onefit $(CAMPAIGN)/package/
	rm -f $(CAMPAIGN)/package/onefit/*.so
	cp $(CAMPAIGN)/_core*.so $(CAMPAIGN)/package/onefit/
	touch $@

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks fit

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(PACKAGE): $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet .
	touch $@

$(TOOLS): $(VENV)/bin/python $(SOURCES)
	mkdir -p build
	$(BIN)/python -m pip install --quiet ".[test,lint]"
	touch $(PACKAGE) $@

$(OLDEST)/.tools: oldest.txt $(SOURCES)
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade pip
	$(OLDEST)/bin/python -m pip install --quiet --constraint oldest.txt ".[test]"
	touch $@

# A rival that cannot be installed here is shown as not runnable. liquidSVM builds only with a
# setuptools that still has pkg_resources.
$(VENV)/.bench: $(PACKAGE)
	$(BIN)/python -m pip install --quiet ".[bench]" "setuptools<81" wheel
	$(BIN)/python -m pip install --quiet --no-build-isolation liquidSVM || echo "no liquidSVM here"
	$(BIN)/python -m pip install --quiet thundersvm-cpu || echo "no ThunderSVM here"
	touch $@

clean:
	rm -rf build $(VENV) $(OLDEST)
