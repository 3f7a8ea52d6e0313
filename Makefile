# Drover: worker machines for Kubernetes, as Crossplane composites.
#
# Everything that is built, and all state of a local control plane, is below .work/.

SHELL := /bin/bash -o pipefail
WORK ?= .work
BIN := $(CURDIR)/$(WORK)/bin
PACKAGES := $(CURDIR)/$(WORK)/packages
CLUSTER := $(CURDIR)/$(WORK)/cluster
REAL_VMS := $(CURDIR)/$(WORK)/real-vms
VERSION ?= v0.1.0
# Registry and organization that releases are pushed to. The packages of a local control
# plane have the default one, whatever is set here.
REGISTRY ?= xpkg.drover.dev/drover

# The packages of the release before this one, for the tests of upgrades. Nothing is released
# yet: a commit of the history stands for it, under a version that is lower. Once there is a
# release, PREVIOUS is its tag.
PREVIOUS ?= df59d596c885
PREVIOUS_VERSION := v0.0.9

KUBERNETES_VERSION := v1.35.4
NETWORK_PLUGINS_VERSION := v1.9.1
PAUSE_IMAGES := registry.k8s.io/pause:3.6 registry.k8s.io/pause:3.10 registry.example.org/pause:3.10
CROSSPLANE_VERSION := v2.4.2

# The other versions of Kubernetes that target clusters are tested with. They are built from the sources of
# cluster/kubernetes with the modules that versions/VERSION.mod pins.
KUBERNETES_PINS := cluster/kubernetes/versions
TARGET_VERSIONS := $(patsubst $(KUBERNETES_PINS)/%.mod,%,$(wildcard $(KUBERNETES_PINS)/*.mod))

kube_version := k8s.io/component-base/version
kube_ldflags = -s -w -X $(kube_version).gitVersion=$(1) -X $(kube_version).gitMajor=1 \
	-X $(kube_version).gitMinor=$(word 2,$(subst ., ,$(1))) -X $(kube_version).gitTreeState=clean
# The RBAC manager has no flag for its metrics: without the second setting each
# instance wants port 8080.
CROSSPLANE_LDFLAGS := -s -w -X github.com/crossplane/crossplane-runtime/v2/pkg/version.version=$(CROSSPLANE_VERSION) \
	-X sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=0

# The same for every build and test: each setting of its own would compile all
# dependencies anew.
export CGO_ENABLED := 0
export GOFLAGS := $(GOFLAGS) -trimpath

# Shows the progress of a long "go build -v": its name, the seconds that it takes on two processors with an empty
# cache, and the command.
STEP := $(CURDIR)/hack/step

.DEFAULT_GOAL := help

# Targets with "##" are for almost everybody. The others have "##+", and "make help ALL=1" shows them, too.
.PHONY: help
help: ## Show the common targets; ALL=1 shows all of them.
	@awk -v all="$(ALL)" 'BEGIN {FS = ":.*##"} \
		/^##@ / && all {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / || (all && /^[a-z0-9-]+:.*##\+ /) {sub(/^\+? /, "", $$2); printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Build

.PHONY: build
build: binaries $(BIN)/drover-kube $(BIN)/crossplane $(BIN)/crossplane-manifests ## Build all binaries, Kubernetes and Crossplane included (minutes, the first time).

# Go's build cache decides what is built anew, so these are always tried.
# Everything that goes into a package is static.
.PHONY: binaries
binaries: vm-tools
	go build -ldflags "-s -w" -o $(BIN)/ ./cmd/...
	cd cluster && go build -ldflags "-s -w" -o $(BIN)/ ./cmd/...
	cd cluster/cloud && go build -ldflags "-s -w" -o $(BIN)/local-cloud .

$(BIN)/drover-kube: $(wildcard cluster/kubernetes/*.go) cluster/kubernetes/go.mod
	@mkdir -p $(BIN)
	@cd cluster/kubernetes && $(STEP) "Kubernetes $(KUBERNETES_VERSION)" 300 go build -v -ldflags "$(call kube_ldflags,$(KUBERNETES_VERSION))" -o $@ .

$(BIN)/crossplane: cluster/go.mod
	@mkdir -p $(BIN)
	@cd cluster && $(STEP) "Crossplane $(CROSSPLANE_VERSION)" 90 go build -v -ldflags "$(CROSSPLANE_LDFLAGS)" -o $@ github.com/crossplane/crossplane/v2/cmd/crossplane

# Crossplane's chart and CRDs, which the launcher installs as they are.
$(BIN)/crossplane-manifests: cluster/go.mod
	@mkdir -p $(BIN)
	@cd cluster && go mod download github.com/crossplane/crossplane/v2
	@rm -rf $@ && cp -r "$$(cd cluster && go list -m -f '{{.Dir}}' github.com/crossplane/crossplane/v2)/cluster" $@
	@chmod -R u+w $@ && touch $@

# What real VMs boot and download. An image is built once for each list of packages, by root,
# from Debian's packages; the tools that it needs are installed where apt-get is. Each
# version of containerd has a pause of its own, and registry.example.org is a registry that only
# the mirror serves. REAL_IMAGES are the images, by default all.
.PHONY: real-vms
real-vms: images $(BIN)/kubelet $(BIN)/plugins ##+ Build the images of the local cloud's real VMs, and what they download (minutes, the first time).
	$(BIN)/vm-image mirror --dir $(REAL_VMS)/mirror --release $(KUBERNETES_VERSION) $(BIN)/kubelet
	$(BIN)/vm-image mirror --dir $(REAL_VMS)/mirror --plugins $(NETWORK_PLUGINS_VERSION) $(BIN)/plugins/*
	$(BIN)/vm-image mirror --dir $(REAL_VMS)/mirror $(PAUSE_IMAGES:%=--image %) $(BIN)/pause

# node-problem-detector with its kernel monitor alone, and the configuration of that. Its reader of the journal needs cgo.
detector := k8s.io/node-problem-detector
$(REAL_VMS)/node-problem-detector: tools/node-problem-detector/go.mod
	@mkdir -p $@
	cd tools/node-problem-detector && go build -ldflags "-s -w" -tags disable_stackdriver_exporter,disable_system_stats_monitor -o $@/ $(detector)/cmd/nodeproblemdetector
	@mv $@/nodeproblemdetector $@/node-problem-detector
	@install -m 0644 "$$(cd tools/node-problem-detector && go list -m -f '{{.Dir}}' $(detector))/config/kernel-monitor.json" $@/
	@touch $@

.PHONY: images
images: $(if $(BUILT),,vm-tools)
	$(BIN)/vm-image build --dir $(REAL_VMS)/images $(REAL_IMAGES:%=--image %)

# The image of the short form of the tests.
SHORT_IMAGES := debian-12-real
.PHONY: real-images
real-images:
	@$(SUBMAKE) --no-print-directory real-vms-if-possible

.PHONY: vm-tools
vm-tools:
	@mkdir -p $(BIN)
	cd cluster/cloud && go build -ldflags "-s -w" -o $(BIN)/ ./cmd/...

$(BIN)/kubelet: cluster/kubernetes/go.mod
	@mkdir -p $(BIN)
	cd cluster/kubernetes && go build -ldflags "$(call kube_ldflags,$(KUBERNETES_VERSION))" -o $@ k8s.io/kubernetes/cmd/kubelet

network_plugins := ipam/host-local main/bridge main/loopback meta/portmap
$(BIN)/plugins: cluster/cloud/go.mod
	@mkdir -p $@
	cd cluster/cloud && go build -ldflags "-s -w" -o $@/ $(network_plugins:%=github.com/containernetworking/plugins/plugins/%)
	@touch $@

# Nothing else needs it, and Karpenter takes some minutes to build, the first time.
.PHONY: drover-karpenter
drover-karpenter:
	@mkdir -p $(BIN)
	@cd karpenter && $(STEP) "Karpenter" 150 go build -v -ldflags "-s -w" -o $(BIN)/ ./cmd/...

$(BIN)/crossplane-cli: test/gitops/clients/go.mod
	@mkdir -p $(BIN)
	cd test/gitops/clients && go build -ldflags "-s -w" -o $@ github.com/crossplane/cli/v2/cmd/crossplane

.PHONY: packages
packages: binaries ## Build the Configuration, Function and Provider packages into .work/packages.
	$(BIN)/xpkg build --root $(CURDIR) --bin $(BIN) --out $(PACKAGES) --version $(VERSION)

.PHONY: generate
generate: ## Generate deepcopy, CRDs, XRDs, docs/conditions.md, docs/reference, dashboards and the lifted provider. Leaves no diff when nothing changed.
	go generate ./...
	cd tools/dashboards && go run . $(CURDIR)/examples/monitoring/dashboards
	@tools=$$(mktemp -d) && trap "rm -rf $$tools" EXIT && go build -o $$tools/ sigs.k8s.io/controller-tools/cmd/controller-gen && \
		cd karpenter && PATH=$$tools:$$PATH go generate ./...

# Generators read and write the tree, which other tests read meanwhile, so this is done in a copy.
GENERATED := $(CURDIR)/$(WORK)/generated
.PHONY: generated
generated: ##+ Check that "make generate" leaves no diff.
	@rm -rf $(GENERATED); mkdir -p $(GENERATED)/before $(GENERATED)/after
	@git ls-files -co --exclude-standard | while read -r f; do [ ! -e "$$f" ] || echo "$$f"; done | tar -cf - -T - | tar -xf - -C $(GENERATED)/before
	@cp -a $(GENERATED)/before/. $(GENERATED)/after
	@$(MAKE) --no-print-directory -C $(GENERATED)/after generate
	@diff -r $(GENERATED)/before $(GENERATED)/after || { echo "generated files are out of date: run make generate, and commit what it generates" >&2; exit 1; }
	@rm -rf $(GENERATED)

MODULES := . cluster cluster/cloud cluster/kubernetes compat/crossplane-common karpenter test/gitops/clients test/karpenter/suites test/monitoring tools/dashboards tools/prose

# The Go vulnerability database: a URL, or file:// and a folder that mirrors it. Where it
# cannot be reached, the faults in test/dependencies/testdata are all that is looked for.
VULNDB ?= https://vuln.go.dev

.PHONY: lint
lint: $(BIN)/golangci-lint $(BIN)/govulncheck ## Run the linters of .golangci.yml on every module, measure the prose, and look for dependencies with known faults.
	@# Gofmt is apart: golangci-lint does not see the files of other systems and of the tag tools.
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt these:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	@# The clients of test/gitops are Argo CD's packages and one file: "make gitops" vets it. Karpenter's suites are pins alone.
	@for m in $(filter-out test/gitops/clients test/karpenter/suites,$(MODULES)); do echo "lint $$m"; (cd $$m && $(BIN)/golangci-lint run ./...) || exit 1; done
	cd tools/prose && go run . -limits limits.txt $(CURDIR) >/dev/null
	VULNDB=$(VULNDB) GOVULNCHECK=$(BIN)/govulncheck go test -count=1 ./test/dependencies

# MODULE and LINTED are the module and the packages of "make test-changed".
.PHONY: lint-packages
lint-packages: $(BIN)/golangci-lint
	cd $(MODULE) && $(BIN)/golangci-lint run $(LINTED)

# The limits of a folder only go down: TIGHTEN=1 lowers them to what the folder keeps now.
.PHONY: prose
prose: ##+ Measure the language of comments and docs by the glossary, and hold it to the limits; SHOW=say or SHOW=all prints the lines, TIGHTEN=1 lowers the limits.
	@cd tools/prose && go run . -limits limits.txt $(if $(SHOW),-show $(SHOW)) $(if $(TIGHTEN),-tighten) $(CURDIR)

$(BIN)/golangci-lint: tools/golangci/go.mod
	@mkdir -p $(BIN)
	cd tools/golangci && go build -ldflags "-s -w" -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(BIN)/govulncheck: tools/govulncheck/go.mod
	@mkdir -p $(BIN)
	cd tools/govulncheck && go build -o $@ golang.org/x/vuln/cmd/govulncheck

##@ Tests

# The parts of "make test" run side by side in a few lanes, because tests on a control plane wait some of the time. More
# lanes than keep the processors busy cost more than they save: all that polls while it waits then polls for longer. The
# lane of what only computes leaves the processors to the others. Each part is measured, and held to test/suite/budget.txt.
SUITE := $(BIN)/suite
SPENT := $(CURDIR)/$(WORK)/spent.jsonl
BUDGET := test/suite/budget.txt
LANES := lane-e2e lane-clouds lane-compute
# A part is a make of its own: it must not wait for a slot of another part. By this name of make, "make -n test" only prints
# its commands. BUILT leaves out the prerequisites that the first part has built.
SUBMAKE := $(MAKE)
part = $(SUITE) stage $(1) $(2) env MAKEFLAGS= BUILT=1 $(SUBMAKE) --no-print-directory $(1)
parts = @code=0; $(foreach p,$(1),$(call part,$(p),$(2)) || code=1;) exit $$code

.PHONY: test
test: $(SUITE) ## Run all tests, as CI does, and compare what they cost with their budget.
	@rm -f $(SPENT); export DROVER_SPENT=$(SPENT); code=0; \
	$(SUITE) stage built env MAKEFLAGS= $(SUBMAKE) --no-print-directory built && \
		$(SUBMAKE) --no-print-directory --keep-going --jobs=$(words $(LANES)) --output-sync=target $(LANES) || code=1; \
	$(SUITE) report $(BUDGET) $(SPENT) || code=1; exit $$code

.PHONY: $(LANES)
lane-e2e:
	$(call parts,e2e real-images realvm)
lane-clouds:
	$(call parts,conformance-short docs render integration karpenter recovery)
lane-compute:
	$(call parts,generated lint unit,nice -n 5)

# All that the parts share.
.PHONY: built
built: build packages $(BIN)/crossplane-cli

.PHONY: test-long
test-long: ## Run the long form of the tests, with each cloud, operating system and setting (hours).
	@$(SUBMAKE) --no-print-directory --keep-going e2e docs render realvm recovery conformance versions gitops karpenter karpenter-suites LONG=1

SINCE ?= main
.PHONY: test-changed
test-changed: $(SUITE) ## Run the tests that the changes since SINCE=main can affect; SHOW=1 only lists them.
	@$(SUITE) changed $(if $(SHOW),-list) $(SINCE)

# Measured packages are run by the suite. Golangci-lint runs vet, and nobody debugs these binaries: without symbols they
# are linked in half the time. The limit is for a test that hangs: it must end, and show where, before CI ends all.
TESTED := go test -vet=off -ldflags "-s -w" -timeout 70m $(if $(DROVER_SPENT),-exec "$(SUITE) test")
# Packages that need a control plane, or have a target of their own.
ON_A_PLANE := conformance docs docs/site e2e gitops karpenter load realvm recovery render soak versions
UNIT_PACKAGES = $$(go list ./... | grep -vE '/test/($(subst $() ,|,$(ON_A_PLANE)))$$|/internal/plan/simulator$$')
PLANE_ENV = DROVER_SHORT=$(if $(LONG),,1) DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES)

# Each run of the simulator has other histories, besides those of its regressions and stories. SEED=N
# repeats those of a run.
#
# The tests of the Terraform provider run it with the real Terraform and the real
# local cloud.
#
# upjet's own tests run with the versions in go.mod, which are newer than its own, and with
# compat/crossplane-common. Those of pkg/controller do not compile with this version of
# terraform-plugin-go.
#
# More packages run at once than there are processors, because some of them wait.
.PHONY: unit
unit: $(if $(BUILT),,binaries) ## Run the tests that need no control plane.
	@seed=$${SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d " ")}; echo "internal/plan/simulator: SEED=$$seed repeats its histories"; \
	$(TESTED) ./internal/plan/simulator -rapid.seed=$$seed -rapid.checks=60
	$(TESTED) -p 4 $(UNIT_PACKAGES)
	$(TESTED) $$(go list -deps ./cmd/... ./config/... | grep ^github.com/crossplane/upjet/v2/pkg/ | grep -v /controller$$)
	@for m in cluster cluster/cloud cluster/kubernetes karpenter test/monitoring tools/prose; do (cd $$m && DROVER_BIN=$(BIN) $(TESTED) ./...) || exit 1; done

.PHONY: integration
integration: $(if $(BUILT),,build) ##+ Run the tests that need an API server: of provider-drover, the clouds' VMs, the local cloud.
	@dir=$$(mktemp -d) && trap "$(BIN)/drover-cluster down --dir $$dir --purge; rm -rf $$dir" EXIT && \
	$(BIN)/drover-cluster up --dir $$dir --bin $(BIN) && export KUBECONFIG_UNDER_TEST=$$dir/kubeconfig && \
	$(TESTED) -count=1 ./cmd/provider-drover ./test/providers && cd cluster/cloud && $(TESTED) -count=1 .

# The short form has all of Drover's promises. It leaves out tests that repeat one with another cloud, image or
# setting, that need a control plane of their own, or that have a target of their own: conformance, kills, skew.
#
# More tests run at once than there are processors: most of their time is spent waiting.
LONG ?=
.PHONY: e2e
e2e: $(if $(BUILT),,build packages) $(if $(LONG),previous-if-possible) ## Run the end-to-end tests on a local control plane: the short form, or with LONG=1 all.
	$(PLANE_ENV) DROVER_PREVIOUS=$$(ls -d $(previous_dir)/packages 2>/dev/null) $(TESTED) -count=1 -parallel 12 ./test/e2e

.PHONY: docs
docs: $(if $(BUILT),,build packages $(BIN)/crossplane-cli) ##+ Run the commands of the pages.
	$(PLANE_ENV) $(TESTED) -count=1 -parallel 4 ./test/docs

.PHONY: render
render: $(if $(BUILT),,build) ##+ Compare the output of each Composition with files, by Crossplane's renderer.
	$(PLANE_ENV) $(TESTED) -count=1 ./test/render

.PHONY: conformance
conformance: $(if $(BUILT),,build packages) ## Hold all providers, or PROVIDER=aws, against what Drover promises of each, and print the table.
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) go test -count=1 -timeout 60m ./test/conformance -v \
		-run '^Test(Conformance|BootstrapProviders|InfrastructureProviders|Imports)$$/^$(or $(PROVIDER),.*)$$' | grep -vE '^=== (RUN|PAUSE|CONT|NAME)'

.PHONY: conformance-short
conformance-short: $(if $(BUILT),,build packages)
	$(PLANE_ENV) $(TESTED) -count=1 ./test/conformance

.PHONY: realvm
realvm: $(if $(BUILT),,build packages real-vms-if-possible) $(if $(LONG),$(REAL_VMS)/node-problem-detector) ##+ Let real machines boot, join, and be drained: the short form, or with LONG=1 each operating system.
	$(PLANE_ENV) DROVER_REAL_VMS=$$(ls -d $(REAL_VMS) 2>/dev/null) $(TESTED) -count=1 -parallel 4 ./test/realvm

.PHONY: karpenter
karpenter: $(if $(BUILT),,build packages) drover-karpenter ## Let the unmodified core of Karpenter make, replace and consolidate Machines.
	$(PLANE_ENV) $(TESTED) -count=1 ./test/karpenter
	$(if $(LONG),$(PLANE_ENV) $(TESTED) -count=1 ./test/conformance -run '^TestKarpenter')

RECOVERY ?=
.PHONY: recovery
recovery: $(if $(BUILT),,build packages) ##+ Restore, move and lose control clusters whose Nodes are in use; RECOVERY="-away=1h -snapshots=20".
	$(PLANE_ENV) $(TESTED) -count=1 ./test/recovery $(RECOVERY)

$(SUITE): $(wildcard test/suite/*.go)
	@mkdir -p $(BIN)
	go build -ldflags "-s -w" -o $@ ./test/suite

# A clone without its history has no release before this one.
.PHONY: previous-if-possible
previous-if-possible: binaries
	@$(MAKE) previous || echo "NO UPGRADE IS TESTED: the release before this one cannot be built, for the reason above" >&2

# Where the image of real VMs cannot be built, their test is skipped, unless
# REQUIRE_REAL_VMS is set, as in CI.
.PHONY: real-vms-if-possible
real-vms-if-possible: $(if $(BUILT),,binaries)
	@$(MAKE) real-vms $(if $(LONG),,REAL_IMAGES="$(SHORT_IMAGES)") || { rm -rf $(REAL_VMS) && [ -z "$(REQUIRE_REAL_VMS)" ] && \
		echo "NO REAL VM IS TESTED: the image cannot be built, for the reason above" >&2; }

include hack/demo.mk hack/release.mk hack/long.mk site/site.mk
