# Packlight: what one does with this repository. `make` alone lists it.
# Each target says what it is doing; what is there already is not fetched again.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test model sdk redis prometheus chromium bench hostile eval fmt lint doc fuzz-smoke clean-sdk

PYTHON ?= python3
CARGO ?= cargo
SECONDS_PER_TARGET ?= 20
VENV := tests/sdk/python/.venv
MODULES := tests/sdk/node/node_modules

say = @printf '\033[1m==> %s\033[0m\n' "$(1)"
# $(call package,command,debian packages): installs them where that is possible without asking.
package = @command -v $(1) >/dev/null || { \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "$(1) is missing: apt-get install $(2)"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(2) >/dev/null; \
	else \
		echo "$(1) is missing. Debian: sudo apt-get install $(2)"; exit 1; \
	fi; }

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: model ## show Packlight at work, without a key (the first build takes some minutes)
	$(call say,demo: building in release mode; the first time that takes some minutes)
	$(CARGO) run --release --quiet -- demo

test: model sdk redis prometheus chromium ## all tests: builds what they need, then `cargo test`
	$(call say,test: cargo test)
	$(CARGO) test --no-fail-fast

model: ## fetch the embedding model (once, by hash)
	$(call say,model: the embedding model in models/)
	$(PYTHON) deploy/fetch-model.py

sdk: $(VENV)/.installed $(MODULES)/.installed ## install the SDK clients of tests/sdk.rs

$(VENV)/.installed: tests/sdk/python/requirements.txt
	$(call say,sdk: openai, google-genai and anthropic for Python in $(VENV))
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y python3-venv >/dev/null; \
			$(PYTHON) -m venv --clear $(VENV); \
		else \
			echo "$(PYTHON) cannot make a virtual environment. Debian: sudo apt-get install python3-venv"; exit 1; \
		fi; }
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r tests/sdk/python/requirements.txt
	@touch $@

$(MODULES)/.installed: tests/sdk/node/package.json tests/sdk/node/package-lock.json
	$(call say,sdk: openai, @google/genai and @anthropic-ai/sdk for Node in $(MODULES))
	$(call package,node,nodejs)
	$(call package,npm,npm)
	npm ci --prefix tests/sdk/node --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

redis: ## make sure that a redis-server is there for tests/redis.rs
	$(call say,redis: redis-server for the tests of the shared store)
	$(call package,redis-server,redis-server)
	@redis-server --version

# A Debian package may bring a service of its own up: nothing of it shall stay.
prometheus: ## make sure that prometheus and promtool are there for tests/prometheus.rs
	$(call say,prometheus: prometheus and promtool for the tests of dashboards/)
	@was=$$(command -v prometheus || true); \
	if [ -z "$$was" ] && [ "$$(id -u)" = 0 ] && [ ! -e /usr/sbin/policy-rc.d ] && command -v apt-get >/dev/null; then \
		printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d; \
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT; \
		echo "prometheus is missing: apt-get install prometheus"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends prometheus >/dev/null; \
	fi
	$(call package,promtool,prometheus)
	@promtool --version 2>&1 | head -1

chromium: ## make sure that a headless Chromium is there for tests/page.rs
	$(call say,chromium: a headless browser for the tests of the status page)
	$(call package,chromium,chromium fonts-noto-core)
	@chromium --version 2>/dev/null

bench: model ## direct against through Packlight, and the embedder (takes some minutes)
	$(call say,bench: building in release mode)
	$(CARGO) bench --bench proxy --bench embed

hostile: ## a million requests with nothing but new names: does memory stay? (takes some minutes)
	$(call say,hostile: building in release mode)
	$(CARGO) bench --bench hostile

eval: model ## how often the demo roster's tools are found, per language
	$(call say,eval: recall on the demo roster (requests and dialogues in five languages) and on four connectors)
	$(CARGO) run --release --quiet -- eval --catalog src/demo/roster.json --overlay src/demo/catalog.toml --cases tests/eval/cases.jsonl --min 'found=0.95,lang=each,within=0.04'
	$(CARGO) run --release --quiet -- eval --catalog src/demo/roster.json --overlay src/demo/catalog.toml --cases tests/eval/cases.jsonl tests/eval/dialogue.jsonl
	$(CARGO) run --release --quiet -- eval --catalog tests/eval/connectors.json --overlay tests/eval/connectors.toml --cases tests/eval/connectors.jsonl

fmt: ## format the sources
	$(CARGO) fmt

lint: ## what CI refuses: format, clippy, documentation
	$(call say,lint: rustfmt)
	$(CARGO) fmt --check
	$(call say,lint: clippy)
	$(CARGO) clippy --all-targets -- -D warnings
	@if command -v cargo-deny >/dev/null; then $(CARGO) deny check; else \
		echo "cargo-deny is not installed: licences and advisories (deny.toml) are not checked"; fi

doc: ## the documentation, its links checked
	$(call say,doc: cargo doc)
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" $(CARGO) doc --no-deps --document-private-items

fuzz-smoke: ## each fuzz target for a short while
	$(call say,fuzz-smoke: $(SECONDS_PER_TARGET) s a target)
	tests/fuzz/smoke $(SECONDS_PER_TARGET)

clean-sdk: ## remove the installed SDK clients
	rm -rf $(VENV) $(MODULES)
