# What a person or the CI types. Each target brings along what it needs (scripts/setup).

.DEFAULT_GOAL := help
.PHONY: help setup demo test steps sanity bench

SHELL := /bin/bash
SANITY := tests/tools/bin/csi-sanity

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing for everything below; needs root only then
	scripts/setup test

# The dev profile: the release build's whole-program optimisation would take minutes for nothing.
demo: ## Show a volume's whole life against the embedded cloud (ARGS=… are handed on)
	scripts/setup demo
	cargo run --locked -- demo $(ARGS)

# All that it prints is looked through for secrets, also when it fails.
test: ## Run everything: style, lints, tests, the demo, the vendor's SDKs, csi-sanity
	scripts/setup test
	@mkdir -p target
	@set -o pipefail; code=0; \
	$(MAKE) --no-print-directory steps 2>&1 | tee target/test.log || code=$$?; \
	scripts/no-secrets target/test.log && exit $$code

# Shown is also what passing tests print: a test that is skipped says so there.
steps:
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --all-targets --no-default-features -- -D warnings
	cargo test --locked -- --show-output
	cargo run --locked -- demo
	tests/sdk/run
	tests/sanity/run

sanity: ## Run the CSI conformance suite against all-in-one (ARGS=… are handed on)
	scripts/setup test
	cargo build --locked
	tests/sanity/run $(ARGS)

# Builds for release three times, which takes minutes: figures of anything else mean little.
bench: ## Print speed, cloud calls, memory and size beside the least that they could be
	scripts/setup demo
	cargo bench --locked --bench churn
	cargo bench --locked --bench footprint

$(SANITY): tests/tools/go.mod tests/tools/go.sum
	cd tests/tools && CGO_ENABLED=0 go build -o bin/ github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity
	@touch $@
