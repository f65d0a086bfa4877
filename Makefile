# Every target is one step that CI calls too. `make demo` and `make test` are all that a newcomer needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SEEDS ?= 0-1999
# The tests start the command hundreds of times: let Python keep what it has compiled, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install demo test check format lint types unit bench soak cluster-assets cluster-test client-test conformance kubectl-page changelog api-surface lock sbom audit image-digest clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml requirements/dev.lock requirements/build.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Pilotage needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements/dev.lock -r requirements/build.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --no-index --editable .
	@touch $@

install: $(STAMP) ## create .venv and leave the command at .venv/bin/pilotage

demo: install ## an embedded cluster in which pods get scheduled, live in the terminal
	$(BIN)/pilotage demo

test: install ## all tests (COVERAGE=yes: and fails if they take less than 95 % of the branches of the core)
	$(BIN)/python -m pytest -n 2 --dist loadfile $(if $(COVERAGE),--cov --cov-report= --cov-report=json:build/coverage.json)
	$(if $(COVERAGE),$(BIN)/python tools/branch_coverage.py build/coverage.json)

check: install format lint types unit ## format, lint, strict types, import layers, unit tests

format:
	$(BIN)/ruff format --check src tests

lint:
	$(BIN)/ruff check src tests

types:
	$(BIN)/mypy

unit:
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not e2e and not cluster and not clients"

bench: install ## pods per second, latency, CPU and memory of the basic workload, in the sandbox
	$(BIN)/pilotage bench --workload SchedulingBasic

soak: install ## two thousand seeds of the simulation (SEEDS=0-1999), kill sweep, durability sweep, memory
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) --jobs 2
	$(BIN)/python -m tests.soak.kill_sweep
	$(BIN)/python -m tests.soak.durability_sweep
	$(BIN)/python -m tests.soak.memory_soak

cluster-assets: install ## build etcd, kube-apiserver and kube-scheduler from their Go modules, once (KUBERNETES=v1.36.3)
	$(BIN)/python tools/cluster_assets.py $(KUBERNETES)

cluster-test: install ## the scheduler as a process against a real API server (if there are assets) and the sandbox
	$(BIN)/python -m pytest -m cluster -n 2 --dist loadfile -rs tests/real_cluster

conformance: install ## Kubernetes' own conformance suite against the sandbox (SPECS=quick, all, or a regular expression; needs Go)
	$(BIN)/python -m tools.kubernetes_suite $(SPECS)

client-test: install ## real clients against the sandbox: Helm, Go, JavaScript, Java, Python, kubectl (those whose tools are there)
	$(BIN)/python -m pytest -m clients -rs tests/clients

kubectl-page: install ## write the tables of docs/kubectl.md anew: commands that are tried, kinds, Kubernetes' own suite
	$(BIN)/python -m tools.kubectl_page

changelog: install ## put CHANGELOG.md together from changes/ (VERSION=0.2.0 for a release: names the section, removes the fragments)
	$(BIN)/python tools/changelog.py $(VERSION)

api-surface: install ## write tests/api/public_surface.txt anew: what plugins may rely on (docs/api-stability.md)
	$(BIN)/python tools/api_surface.py

lock: install ## resolve the dependencies anew
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --upgrade --generate-hashes --no-header --python-version 3.11 pyproject.toml -o requirements/runtime.lock
	$(BIN)/uv pip compile --quiet --universal --upgrade --generate-hashes --no-header --python-version 3.11 --extra dev pyproject.toml -o requirements/dev.lock
	$(BIN)/uv pip compile --quiet --universal --upgrade --generate-hashes --no-header --python-version 3.11 --constraint requirements/dev.lock requirements/build.in -o requirements/build.lock
	$(BIN)/uv pip compile --quiet --universal --upgrade --generate-hashes --no-header --python-version 3.11 requirements/audit.in -o requirements/audit.lock

sbom: install ## what a release is made of, as CycloneDX in dist/
	@mkdir -p dist
	$(BIN)/python tools/sbom.py > dist/pilotage.cdx.json

audit: install ## known vulnerabilities of everything that is locked (exits with 3 where no database can be reached)
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/pip install --quiet --require-hashes -r requirements/audit.lock
	$(BIN)/python tools/audit.py $(VENV)/audit/bin/pip-audit requirements/runtime.lock requirements/dev.lock requirements/build.lock

image-digest: ## pin the base image of deploy/Dockerfile by digest (REGISTRY=URL for a mirror; exits with 3 if none answers)
	$(PYTHON) tools/image_digest.py deploy/Dockerfile $(REGISTRY)

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) build .coverage .mypy_cache .ruff_cache .pytest_cache
