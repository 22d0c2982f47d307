# Thin: each target is the command that a person would type. `make help` lists them.
.DEFAULT_GOAL := help
VENV ?= .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed

help: ## list the targets
	@grep -hE '^[a-z0-9%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(STAMP): pyproject.toml
	test -x $(PY) || python3 -m venv $(VENV)
	$(PY) -m pip install -q --disable-pip-version-check --upgrade 'pip>=25.1'
	$(PY) -m pip install -q --disable-pip-version-check --no-compile -e '.[operator,local]' --group dev
	@# Half of pip's time would be compiling, on one core.
	$(PY) -m compileall -q -j 0 $(VENV)/lib
	touch $@

install: $(STAMP) ## make .venv with everything that development and tests need

demo: ## from nothing to a cluster, answered questions, 30 % of the users on a new index, and back; falls back to demo-local
	@begun=$$(date +%s); $(MAKE) -s install && \
	$(PY) -m tidegate_cli.demo_cluster --setup-seconds $$(($$(date +%s) - begun))

demo-local: $(STAMP) ## without a cluster: from nothing to answered questions with their sources, and a document edited
	$(PY) -m tidegate_cli.demo

fmt: $(STAMP) ## format the code
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix-only -q .

lint: $(STAMP) ## style and import contracts
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check -q .
	$(VENV)/bin/lint-imports --no-cache

type: $(STAMP) ## static types, strict
	$(VENV)/bin/mypy

generate: $(STAMP) ## write everything that is derived: CRDs, the chart's copy, the quickstart's ConfigMap
	$(PY) -m tidegate_cli.generate

verify: $(STAMP) ## fail when a derived file is stale
	$(PY) -m tidegate_cli.generate --check

unit: $(STAMP) ## fast tests, no sockets
	$(VENV)/bin/pytest -q tests/unit tests/layout

test: $(STAMP) ## every test; what cannot run here is skipped with its reason
	tests/run.sh

cluster-up: ## a cluster by what is found: KUBECONFIG, kind, else a single node of our own; builds it the first time
	tests/e2e/cluster.sh up

cluster-down: ## end it and leave nothing behind
	tests/e2e/cluster.sh down

kubeconfig: ## print the path of its kubeconfig
	@tests/e2e/cluster.sh kubeconfig

images: ## build the images of operator, sidecar and runtime
	tests/e2e/images.sh build

deploy: ## images and chart into the current cluster
	tests/e2e/deploy.sh

bench-%: $(STAMP) ## run benchmarks/NAME.py; the last lines are RESULT key=value
	$(PY) benchmarks/$(subst -,_,$*).py

.PHONY: help install demo demo-local fmt lint type generate verify unit test cluster-up cluster-down kubeconfig images deploy
