# Every target sets up .venv first where it is missing or the lock has changed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
LOCK ?= requirements-cpu.lock
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-short test test-all lint up bench-env bench-rl bench-loop

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) ## make .venv from LOCK

$(READY): $(LOCK) pyproject.toml
	@$(PYTHON) -c 'import sys; assert sys.version_info[:2] == (3, 11), f"python {sys.version.split()[0]}: the lock is for 3.11; run make PYTHON=/path/to/python3.11"'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-deps -r $(LOCK)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $(READY)

demo: $(READY) ## the main job on the embedded default: two rounds of curate, train and steer
	$(BIN)/touchstone demo

demo-short: $(READY) ## curation alone: hard-search and math, published and loaded back
	$(BIN)/touchstone demo --short

lint: $(READY) ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint ## all fast tests, types and style included
	$(BIN)/pytest -m "not slow"

test-all: lint ## the slow ones too
	$(BIN)/pytest

up: $(READY) ## Prefect server, deployments and worker in the foreground
	$(BIN)/python -m infra.up

bench-env: $(READY) ## the agent's world measured: depth, crowd, sandbox, faults, injection
	$(BIN)/python -m bench.env

bench-rl: $(READY) ## training measured: learning, overlap, on-policy, kills, speed
	$(BIN)/python -m bench.rl

bench-loop: $(READY) ## the loop measured: steering, typing of failures, kills, twins
	$(BIN)/python -m bench.loop
