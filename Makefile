# What a person or the CI types. Each target brings along what it needs (scripts/setup).

.DEFAULT_GOAL := help
.PHONY: help setup demo cluster test test-host logged steps host machines e2e e2e-upstream sanity image image-check chart bench

SHELL := /bin/bash
SANITY := tests/tools/bin/csi-sanity
HELM := tests/helm/bin/helm
CLUSTER := tests/cluster/bin/kube
SUITE := tests/cluster/bin/upstream.test
TARGET := $(or $(CARGO_TARGET_DIR),target)
ARCH ?= $(if $(filter aarch64,$(shell uname -m)),arm64,amd64)

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing for everything below; needs root only then
	scripts/setup test

# The dev profile: the release build's whole-program optimisation would take minutes for nothing.
demo: ## Show a volume's whole life against the embedded cloud (ARGS=… are handed on)
	scripts/setup demo
	cargo run --locked -- demo $(ARGS)

# The interrupt is for the test, which takes everything down; Cargo would go before it is done.
cluster: ## Bring up a Kubernetes with a kubelet and the driver on this machine, until Ctrl-C; needs root
	scripts/setup cluster
	tests/e2e/image
	@trap '' INT; cargo test --locked --test e2e -- stay || [[ $$? == 130 ]]

e2e: ## Test the driver in that Kubernetes: pods on volumes, and what can happen to them (ARGS=… are handed on)
	scripts/setup cluster
	tests/e2e/run $(ARGS)

e2e-upstream: ## Run Kubernetes' own storage suite there (ARGS=REGEX runs the specs of such names)
	scripts/setup cluster
	tests/e2e/run upstream $(ARGS)

test: logged ## Run everything: style, lints, tests, guests with hot-plugged disks, Kubernetes without and with a kubelet, the demo, the vendor's SDKs, csi-sanity, the image

test-host: logged ## Run the same without guests and cluster, which take minutes, QEMU and Kubernetes
test-host: NEEDS := host
test-host: LANES := host

# All that it prints is looked through for secrets, also when it fails.
NEEDS := test
LANES := machines host
logged:
	scripts/setup $(NEEDS)
	@mkdir -p target
	@set -o pipefail; code=0; \
	$(MAKE) --no-print-directory steps LANES='$(LANES)' 2>&1 | tee target/test.log || code=$$?; \
	scripts/no-secrets target/test.log && exit $$code

# All programs are built first: while one is linked anew, it is not there for a moment. From then on tests wait more than
# they work, so that those of guests and clusters run beside the others. `--all-targets` leaves tests/e2e out.
steps:
	@rm -f target/machines.log $(LANES:%=target/%.passed)
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --all-targets --no-default-features -- -D warnings
	cargo clippy --locked --test e2e -- -D warnings
	$(if $(filter machines,$(LANES)),[[ -n $${DRIVER_IMAGE:-} ]] || tests/e2e/image)
	cargo run --locked -- demo
	cargo test --locked --no-run
	cargo test --locked --no-run --test e2e
	@code=0; $(MAKE) --no-print-directory -j $(words $(LANES)) $(LANES) || code=$$?; \
	$(if $(filter machines,$(LANES)),cat target/machines.log;) \
	for lane in $(LANES); do \
	[[ -e target/$$lane.passed ]] || echo "make: lane $$lane has failed, or was stopped when another one failed"; done; exit $$code

# Make's own jobs are none of theirs.
ALONE := env -u MAKEFLAGS -u MFLAGS

# Shown is also what passing tests print: a test that is skipped says so there.
host:
	$(ALONE) cargo test --locked -- --show-output --skip hotplug:: --skip on_a_cluster::
	$(ALONE) tests/helm/run
	$(ALONE) tests/sdk/run
	$(ALONE) tests/sanity/run
	$(ALONE) tests/image/run
	@touch target/host.passed

# What they print does not mingle with that of the others. The image is there.
machines:
	@echo 'tests/cluster, tests/guest and tests/e2e run beside what follows; what they print comes at the end, until then see target/machines.log'
	@{ $(ALONE) cargo test --locked --test cluster -- --show-output && \
	$(ALONE) cargo test --locked --test guest -- --show-output hotplug:: && \
	$(ALONE) cargo test --locked --test e2e; } >target/machines.log 2>&1 && touch target/machines.passed

sanity: ## Run the CSI conformance suite against all-in-one (ARGS=… are handed on)
	scripts/setup host
	cargo build --locked
	tests/sanity/run $(ARGS)

# Without a container engine. The driver is built for release, which takes minutes.
image: ## Build the container image and its list of parts below target/image (ARCH=amd64 or arm64)
	scripts/setup image $(ARCH)
	scripts/image/build $(ARCH)

# The driver is built once: what must not depend on where and when it is built is seen in the file.
image-check: ## Build the image, once more from its packages on, compare, and test what is in it (ARCH=…)
image-check: image
	OUT=$(TARGET)/image/again scripts/image/build $(ARCH)
	@for file in $(TARGET)/image/again/diskplugin-*-$(ARCH).*; do \
	cmp "$$file" "$(TARGET)/image/$${file##*/}" || exit 1; done
	tests/image/run $(ARCH)

chart: ## Look at the Helm chart: lint, renders against the goldens, values that are refused (UPDATE=1 writes the goldens)
	scripts/setup host
	tests/helm/run

# Builds for release, which takes minutes: figures of anything else mean little. A row is one of `cargo bench --bench cloud -- --list`.
bench: ## Print time, cloud calls, memory and size beside their floors (ROW=NAME is one row of the cloud, ARGS=… are handed on)
	scripts/setup demo
	cargo bench --locked --bench cloud -- $(ROW) $(ARGS)
ifeq ($(ROW),)
	cargo bench --locked --bench micro
	cargo bench --locked --bench scale
	cargo bench --locked --bench footprint
	cargo bench --locked --bench find
	cargo bench --locked --bench hotplug
	cargo bench --locked --bench stage
endif

$(SANITY): tests/tools/go.mod tests/tools/go.sum
	cd tests/tools && CGO_ENABLED=0 go build -o bin/ github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity
	@touch $@

$(HELM): tests/helm/go.mod tests/helm/go.sum tests/helm/strict/main.go
	cd tests/helm && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/ helm.sh/helm/v4/cmd/helm ./strict
	@touch $@

# Kubernetes' own storage suite, what runs its specs side by side, and what runs in their pods.
$(SUITE): tests/cluster/go/go.mod tests/cluster/go/go.sum $(wildcard tests/cluster/go/upstream/*.go)
	cd tests/cluster/go && CGO_ENABLED=0 go build -trimpath -o ../bin/ -ldflags '-s -w' \
		github.com/onsi/ginkgo/v2/ginkgo k8s.io/kubernetes/test/images/agnhost
	cd tests/cluster/go && CGO_ENABLED=0 go test -c -trimpath -o ../bin/upstream.test -ldflags '-s -w' ./upstream

# Kubernetes itself is one file; without a version in it kubectl would not talk to it. The CRDs are the module's own.
$(CLUSTER): VERSION := k8s.io/component-base/version.git
$(CLUSTER): tests/cluster/go/go.mod tests/cluster/go/go.sum $(wildcard tests/cluster/go/*.go tests/cluster/go/kube/*.go)
	cd tests/cluster/go && CGO_ENABLED=0 go build -trimpath -o ../bin/ \
		-ldflags '-s -w -X $(VERSION)Version=v1.36.3 -X $(VERSION)Major=1 -X $(VERSION)Minor=36' ./kube tool
	rm -rf tests/cluster/bin/crd && mkdir tests/cluster/bin/crd
	cd tests/cluster/go && install -m 644 -t ../bin/crd \
		"$$(go list -m -f '{{.Dir}}' github.com/kubernetes-csi/external-snapshotter/client/v8)"/config/crd/*.k8s.io_*.yaml
	@touch $@
