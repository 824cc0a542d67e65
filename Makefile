# The entry points of developers and CI. Each target first installs what it needs (scripts/setup).
# ARGS and ROW reach the recipes through the environment, so that the shell does not interpret `|`, `*` or `;` in them.

.DEFAULT_GOAL := help
.PHONY: help setup demo cluster lint test test-all ci test-oldest guests programs tools host roles waiting machines rest e2e e2e-upstream sanity image image-check chart release bench simulate test-long fuzz

SHELL := /bin/bash
# Cargo and Go decide themselves how much they do in parallel.
unexport MAKEFLAGS
SANITY := tests/tools/bin/csi-sanity
HELM := tests/helm/bin/helm
CLUSTER := tests/cluster/bin/kube
OLDEST := tests/cluster/bin/kube-oldest
SUITE := tests/cluster/bin/upstream.test
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Suites of machines and Kubernetes, and suites that mostly wait for timers, tools and devices.
MACHINES := cluster guest e2e
WAITING := node node_kill node_model
SUITES := $(notdir $(patsubst %/main.rs,%,$(wildcard tests/*/main.rs crates/*/tests/*/main.rs)))
HOST := $(filter-out $(MACHINES) $(WAITING) roles,$(SUITES))
tests = $(patsubst %,--test %,$(1))
# For each target: seconds, such as 20s, or a number of executions.
FUZZ ?= 20s
ARCH ?= $(if $(filter aarch64,$(shell uname -m)),arm64,amd64)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing for everything below; needs root only then
	scripts/setup test-all

# The dev profile: the release build's whole-program optimisation would take minutes for nothing.
demo: ## Run a volume's life cycle against the fake cloud (ARGS=… are passed on)
	scripts/setup demo
	set -f; cargo run --locked -- demo $$ARGS

# The test handles the interrupt and stops everything; Cargo must not exit before it.
cluster: ## Run Kubernetes with a kubelet and the driver on this machine until Ctrl-C; needs root
	scripts/setup cluster
	tests/e2e/image
	@trap '' INT; cargo test --locked --test e2e -- stay || [[ $$? == 130 ]]

e2e: ## Test pods on volumes in that Kubernetes (ARGS=… are passed on)
	scripts/setup cluster
	set -f; tests/e2e/run $$ARGS

e2e-upstream: ## Run the upstream storage suite there (ARGS=REGEX selects specs by name)
	scripts/setup cluster
	tests/e2e/run upstream $${ARGS:+"$$ARGS"}

test-oldest: ## Run tests/cluster on the oldest supported Kubernetes; its first build takes ten minutes
	scripts/setup cluster
	$(MAKE) --no-print-directory $(OLDEST)
	KUBERNETES=oldest cargo test --locked --test cluster -- --show-output

# The last one: the tools of the newest suite create filesystems that the oldest kernel mounts.
guests: ## Run tests/guest on Linux 5.10, 6.1 and 6.12 (Debian's kernels)
	scripts/setup guests
	@for guest in bookworm bullseye trixie 'bullseye trixie'; do \
	set -- $$guest; export GUEST_KERNEL=$$1; unset GUEST_TOOLS; [[ -z $${2:-} ]] || export GUEST_TOOLS=$$2; \
	echo "guests: kernel of $$1, tools of $${2:-the newer of $$1 and this machine}"; SECONDS=0; \
	cargo test --locked --test guest -- --show-output hotplug:: || exit 1; \
	echo "guests: kernel of $$1 done in $$SECONDS s"; done

lint: ## Check the format, lints, licences and vulnerabilities of dependencies, and the minimum Rust version
	scripts/setup lint
	cargo fmt --all --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --all-targets --no-default-features -- -D warnings
	cargo clippy --locked --test e2e -- -D warnings
	cargo clippy --locked --package fuzz -- -D warnings --cfg fuzzing
	cargo check --locked --package fake-ecs --features wiremock --example wiremock
	cargo check --locked --package ecs --example list_disks
	scripts/msrv
	scripts/deny

test: ## Run the tests on this machine; those that need root are skipped without it
	$(call lanes,test,host roles waiting)

test-all: ## Run all tests: also in guests and Kubernetes, the demo, the chart, SDKs, csi-sanity, the image
	$(call lanes,test-all,host roles waiting machines rest)

ci: ## Run lint and test-all
	$(call lanes,test-all,lint host roles waiting machines rest)

# Lanes run in parallel. The whole output is searched for secrets, also after a failure; failures are repeated at its end.
define lanes
	scripts/setup demo
	@mkdir -p target; set -o pipefail; code=0; \
	$(MAKE) $(filter -n,$(firstword -$(MAKEFLAGS))) --no-print-directory --jobs NEEDS=$(1) $(2) 2>&1 | tee target/test.log || code=$$?; \
	scripts/no-secrets target/test.log || code=1; ((code == 0)) || scripts/failures target/test.log; exit $$code
endef

# What takes minutes in Go is built while Cargo compiles.
tools:
	scripts/setup $(NEEDS)

# All programs are built before any test, because a program that is being linked does not exist for a moment.
programs: $(filter lint,$(MAKECMDGOALS))
ifneq ($(filter machines,$(MAKECMDGOALS)),)
	[[ -n $${DRIVER_IMAGE:-} ]] || tests/e2e/image programs
	cargo test --locked --no-run && cargo test --locked --no-run --test e2e
else
	cargo test --locked --no-run --lib $(call tests,$(HOST) $(WAITING) roles)
endif

# --show-output, because a skipped test prints its reason.
host: programs tools
	cargo test --locked --lib $(call tests,$(HOST)) -- --show-output

rest: host
	$(TARGET)/debug/diskplugin demo
	$(TARGET)/debug/examples/wiremock
	$(TARGET)/debug/examples/list_disks
	tests/helm/run
	tests/sdk/run
	tests/sanity/run
	tests/image/run

# The output of the following lanes is printed at their end, so that it does not mix with that of `host`.
waiting: programs tools
	@echo 'the tests of $(WAITING) run in parallel with the following; their output is in target/waiting.log'
	@code=0; cargo test --locked $(call tests,$(WAITING)) -- --show-output >target/waiting.log 2>&1 || code=$$?; \
	cat target/waiting.log; exit $$code

# Roles wait for timers: with a thread for each processor, they take four times as long.
roles: programs tools
	@echo 'the tests of roles run in parallel with the following; their output is in target/roles.log'
	@code=0; cargo test --locked --test roles -- --show-output --test-threads 8 >target/roles.log 2>&1 || code=$$?; \
	cat target/roles.log; exit $$code

machines: roles waiting
	@echo 'the tests of $(MACHINES) run in parallel with the following; their output is in target/machines.log'
	@code=0; { { [[ -n $${DRIVER_IMAGE:-} ]] || tests/e2e/image archive; } && \
	cargo test --locked --test cluster -- --show-output && \
	cargo test --locked --test guest -- --show-output && \
	cargo test --locked --test e2e; } >target/machines.log 2>&1 || code=$$?; \
	cat target/machines.log; exit $$code

fuzz: ## Fuzz the parsers, each target for FUZZ=20s or FUZZ=10000000 executions (ARGS=TARGET selects one)
	scripts/setup test
	set -f; scripts/fuzz $(FUZZ) $$ARGS

sanity: ## Run the CSI conformance suite against all-in-one (ARGS=… are passed on)
	scripts/setup go
	cargo build --locked
	set -f; tests/sanity/run $$ARGS

# Needs no container engine. The release build takes minutes.
image: ## Build the container image and its SBOM in target/image (ARCH=amd64 or arm64)
	scripts/setup image $(ARCH)
	scripts/image/build $(ARCH)

# The driver is built once; scripts/image/build checks that it contains no path of the machine.
image-check: ## Build the image, assemble it a second time, compare, and test its content (ARCH=…)
image-check: image
	OUT=$(TARGET)/image/again scripts/image/build $(ARCH)
	@for file in $(TARGET)/image/again/diskplugin-*-$(ARCH).*; do \
	cmp "$$file" "$(TARGET)/image/$${file##*/}" || exit 1; done
	tests/image/run $(ARCH)

chart: ## Check the Helm chart: lint, renders against the goldens, rejected values (UPDATE=1 writes the goldens)
	scripts/setup go
	tests/helm/run

release: ## Build what a release publishes: images, SBOMs, chart, notes, checksums (KEY=FILE signs them)
	scripts/setup go
	scripts/setup image amd64
	scripts/setup image arm64
	$(MAKE) --no-print-directory $(HELM)
	scripts/release

# A debug build runs a fraction of the schedules in the same time.
simulate: ## Run the controller under seeded schedules of faults in virtual time (ARGS=… are passed on)
	scripts/setup demo
	set -f; cargo run --locked --release --package simulator -- $$ARGS

test-long: ## Run 100,000 of these schedules, ten million inputs of each fuzz target, and two hours of the soak test
	scripts/setup test
	cargo run --locked --release --package simulator -- --schedules 100000
	scripts/fuzz 10000000
	SOAK_SECONDS=7200 cargo test --locked --test roles -- soak --show-output

# Figures need a release build, which takes minutes. `cargo bench --bench cloud -- --list` prints the rows.
bench: ## Print time, cloud calls, memory and size next to their floors (ROW=NAME runs one row, ARGS=… are passed on)
	scripts/setup demo
	set -f; cargo bench --locked --bench cloud -- $${ROW:+"$$ROW"} $$ARGS
ifeq ($(ROW),)
	cargo bench --locked --bench micro
	cargo bench --locked --bench scale
	cargo bench --locked --bench footprint
	cargo bench --locked --bench find
	cargo bench --locked --bench hotplug
	cargo bench --locked --bench stage
endif

# csi-sanity and grpcurl.
$(SANITY): tests/tools/go.mod tests/tools/go.sum
	cd tests/tools && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/ tool
	@touch $@

$(HELM): tests/helm/go.mod tests/helm/go.sum $(wildcard tests/helm/strict/*.go)
	cd tests/helm && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/ helm.sh/helm/v4/cmd/helm ./strict
	@touch $@

# The upstream storage suite, its parallel runner, and the program that runs in its pods.
$(SUITE): tests/cluster/go/go.mod tests/cluster/go/go.sum $(wildcard tests/cluster/go/upstream/*.go)
	cd tests/cluster/go && CGO_ENABLED=0 go build -trimpath -o ../bin/ -ldflags '-s -w' \
		github.com/onsi/ginkgo/v2/ginkgo k8s.io/kubernetes/test/images/agnhost
	cd tests/cluster/go && CGO_ENABLED=0 go test -c -trimpath -o ../bin/upstream.test -ldflags '-s -w' ./upstream

# All Kubernetes components are one binary; kubectl rejects it unless a version is linked in. The CRDs are the module's.
$(CLUSTER): VERSION := k8s.io/component-base/version.git
$(CLUSTER): tests/cluster/go/go.mod tests/cluster/go/go.sum $(wildcard tests/cluster/go/*.go tests/cluster/go/kube/*.go)
	cd tests/cluster/go && CGO_ENABLED=0 go build -trimpath -o ../bin/ \
		-ldflags '-s -w -X $(VERSION)Version=v1.36.3 -X $(VERSION)Major=1 -X $(VERSION)Minor=36' ./kube tool
	rm -rf tests/cluster/bin/crd && mkdir tests/cluster/bin/crd
	cd tests/cluster/go && install -m 644 -t ../bin/crd \
		"$$(go list -m -f '{{.Dir}}' github.com/kubernetes-csi/external-snapshotter/client/v8)"/config/crd/*.k8s.io_*.yaml
	@touch $@

$(OLDEST): VERSION := k8s.io/component-base/version.git
$(OLDEST): tests/cluster/go/oldest.mod tests/cluster/go/oldest.sum $(wildcard tests/cluster/go/kube/*.go)
	cd tests/cluster/go && CGO_ENABLED=0 go build -modfile=oldest.mod -trimpath -o ../bin/kube-oldest \
		-ldflags '-s -w -X $(VERSION)Version=v1.34.4 -X $(VERSION)Major=1 -X $(VERSION)Minor=34' ./kube
	@touch $@
