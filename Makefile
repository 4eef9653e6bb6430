# `make help` lists what there is. Every target installs what it lacks (LOWTIDE_NO_INSTALL=1: says
# what that is, and stops).

.DEFAULT_GOAL := help
.PHONY: help deps build wheel wheels demo test test-sanitizers test-long bench bench-hiremate bench-kumar bench-magis bench-moccasin bench-offload bench-torch bench-prices bench-transforms gpu format lint fuzz \
  coverage site install clean

DATA ?=
MODELS ?=
BENCH_TIME ?= 10
BENCH_LONG ?= 300
BENCH_SEEDS ?= 1
BENCH_THREADS ?= 1
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
ONLY ?=
GPU_PYTHON ?= python3.12
GPU_FLAGS ?=

help: ## This list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12
	@echo
	@echo "Variables: LOWTIDE_JOBS (parallel jobs, all cores), LOWTIDE_TEST_SCALE (how many times the"
	@echo "samples of the large sweeps, 1; test-long: 100), LOWTIDE_NO_INSTALL=1, CI=true (warnings are errors),"
	@echo "BENCH_TIME (seconds a run, 10), BENCH_SEEDS (1), BENCH_THREADS (1), MODELS (of bench-torch, all)"

deps: ## Install what building and testing lack, torch excepted
	@tools/deps build test

build: ## build/release/lowtide
	@tools/deps build
	@tools/build release lowtide_cli

wheel: ## The Python package: build/wheels, installed into build/venv
	@tools/deps build wheel
	@tools/wheel

wheels: ## For people without a compiler, into build/dist: a wheel for each Python from 3.9 to 3.14 found here, and the sources; each is tried
	@tools/deps build wheel wheels
	@tools/wheels

demo: build ## Plan the training of a ResNet-50 into half its memory, into build/demo.html, and show it
	@build/release/lowtide demo -o build/demo.html

test: ## Every test in an optimised build; TORCH=2.11.0: the PyTorch suites with that version (PYTHON=)
ifdef TORCH
	@tools/test_torch $(TORCH)
else
	@tools/deps build wheel test engines
	@tools/test
endif

test-sanitizers: ## C++ under the address and undefined-behaviour sanitizers, threads under the thread sanitizer
	@tools/deps build engines
	@tools/test_sanitizers

test-long: ## Every test in every preset, sweeps at full length, fuzzers
	@tools/deps build wheel test capture onnx jax engines fuzz
	@tools/deps zoo || echo "Without these packages their architectures are skipped."
	@tools/test long
	@tools/fuzz 600

coverage: ## Which lines the tests run, into build/coverage-report; ONLY="base plan tests/frontend": of these rooms and suites
	@tools/deps build wheel test capture onnx jax engines coverage
	@tools/coverage $(ONLY)

bench: ## Tables and pictures over examples, generated graphs and DATA=DIR; BENCH_TIME=1: quick
	@tools/deps build bench
	@bench/run "$(DATA)" --time $(BENCH_TIME) --seeds $(BENCH_SEEDS) --threads $(BENCH_THREADS)

bench-hiremate: wheel ## HiRemate's tables and figures, ours beside its, with DATA=DIR/hiremate; no GPU: hours; BENCH_TIME=5: sooner
	@tools/deps capture engines bench
	@tools/build release lowtide_cli
	@mkdir -p build/bench
	@tools/engines build/venv/bin/python bench/papers/hiremate/run.py $(if $(DATA),--data "$(DATA)") --time $(BENCH_TIME)

bench-kumar: ## Tables and figures of Kumar et al., 2019, ours beside theirs, into bench/results
	@tools/deps build bench
	@tools/build release lowtide_cli
	@build/venv/bin/python bench/papers/kumar.py
	@build/venv/bin/python bench/papers/spines.py

bench-magis: wheel ## MAGIS' figures 9 to 16, ours and peers beside its bars; no GPU; BENCH_TIME=2, BENCH_FLAGS="--only vit": sooner
	@tools/deps capture bench
	@mkdir -p build/bench
	@build/venv/bin/python bench/papers/magis/run.py --time $(BENCH_TIME) --ablation --curves $(BENCH_FLAGS)

bench-moccasin: build ## Moccasin's tables 2 and 3 and figure 5, of DATA=DIR/moccasin; BENCH_TIME=, BENCH_LONG= seconds
	@tools/deps engines bench
	@tools/engines build/venv/bin/python bench/papers/moccasin.py "$(DATA)" --time $(BENCH_TIME) --long $(BENCH_LONG)

bench-offload: ## Plans over a link to the host beside what others do, with DATA=DIR/captured; POFO on chains, exact answers
	@tools/deps build bench engines
	@tools/build release lowtide_cli fastest
	@build/venv/bin/python bench/offload.py --data "$(DATA)" --time $(BENCH_TIME)
	@build/venv/bin/python bench/peers/pofo.py --time $(BENCH_TIME)
	@tools/engines build/venv/bin/python bench/offload_tiny.py

bench-torch: wheel ## PyTorch models within a budget, ours and PyTorch's own ways beside each other
	@tools/deps capture bench
	@build/venv/bin/python bench/torch/run.py $(MODELS)

bench-prices: wheel ## Prices of kernels and of their parts against measured times, on one core
	@tools/deps capture
	@build/venv/bin/python bench/torch/prices.py

bench-transforms: wheel ## Plans that change the graph beside recomputation alone, on captured networks, no GPU
	@tools/deps capture
	@mkdir -p build/bench
	@build/venv/bin/python bench/torch/transforms.py -o build/bench/transforms

gpu: ## What works on the GPU here, in 8 minutes; without one, .gpu: what a machine without a network needs for it (GPU_PYTHON=python3.12)
	@tools/gpu $(GPU_PYTHON) $(GPU_FLAGS)

format: ## Rewrite all C++ files with clang-format
	@tools/deps lint
	@git ls-files --cached --others --exclude-standard '*.h' '*.cpp' | xargs $$(tools/clang clang-format) -i

lint: ## Includes, file sizes, clang-format, shellcheck, ruff, mypy, clang-tidy on what changed (LINT_ALL=1: on all)
	@tools/deps build lint
	@tools/lint

fuzz: ## Run each fuzzer for FUZZ_SECONDS=60
	@tools/deps build fuzz
	@tools/fuzz $(FUZZ_SECONDS)

site: build ## The documentation as a site, build/site/index.html, every link checked
	@tools/deps wheel site
	@tools/site

install: build ## Command, headers and CMake package under PREFIX=/usr/local
	@cmake --install build/release --prefix $(PREFIX)

clean: ## Remove what was built; build/venv stays
	@rm -rf .gpu
	@find build -mindepth 1 -maxdepth 1 ! -name venv -exec rm -rf {} + 2>/dev/null || true
