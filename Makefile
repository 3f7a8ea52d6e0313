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

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: preflight demo-binaries demo-packages ## Start a local control plane, install Drover and bring up three Nodes. Ctrl-C stops all that it started.
	@$(BIN)/demo --launcher $(BIN)/drover-cluster --dir $(CLUSTER) --packages $(PACKAGES)

# The demo runs the local cloud, so it needs no provider of another cloud, and none of the tools.
DEMO_PACKAGES := drover function-drover provider-drover provider-local
.PHONY: demo-binaries
demo-binaries: $(BIN)/drover-kube $(BIN)/crossplane $(BIN)/crossplane-manifests
	@$(STEP) "Drover" 120 go build -v -ldflags "-s -w" -o $(BIN)/ ./cmd/demo ./cmd/kubectl-drover $(patsubst %,./cmd/%,$(filter-out drover,$(DEMO_PACKAGES)))
	@cd cluster && $(STEP) "Launcher" 60 go build -v -ldflags "-s -w" -o $(BIN)/ ./cmd/drover-cluster ./cmd/xpkg
	@cd cluster/cloud && $(STEP) "Local cloud" 45 go build -v -ldflags "-s -w" -o $(BIN)/local-cloud .

.PHONY: demo-packages
demo-packages: demo-binaries
	@$(BIN)/xpkg build --root $(CURDIR) --bin $(BIN) --out $(PACKAGES) --version $(VERSION) $(DEMO_PACKAGES)

# It needs no Go, and is the first prerequisite, so that a missing one is reported before minutes of building.
.PHONY: preflight
preflight: ## Check what the demo needs: Go, free disk space, free ports. PREFLIGHT=no skips it.
	@$(if $(filter no,$(PREFLIGHT)),:,hack/preflight $(WORK))

.PHONY: recording
recording: build packages ## Record the demo of the README anew: needs asciinema and npm.
	@hack/record

.PHONY: demo-down
demo-down: ## Stop the demo and delete all that it made.
	@if [ -x $(BIN)/drover-cluster ]; then $(BIN)/drover-cluster down --dir $(CLUSTER) --purge; else rm -rf $(CLUSTER); fi

FAULT ?=
.PHONY: demo-break
demo-break: ## Break the cloud of the demo, FAULT=quota; without FAULT a menu of ten faults, FAULT=none ends all.
	@test -x $(BIN)/demo || { echo "no demo runs, start it with make demo" >&2; exit 1; }
	@$(BIN)/demo --launcher $(BIN)/drover-cluster --dir $(CLUSTER) --break --fault '$(FAULT)'

.PHONY: demo-real
demo-real: REAL_IMAGES := debian-12-real
demo-real: preflight demo-binaries demo-packages real-vms ## Start a local control plane and let three real Debian machines join, run a pod each, roll and go.
	@$(BIN)/demo --launcher $(BIN)/drover-cluster --dir $(CLUSTER) --packages $(PACKAGES) --real-vms $(REAL_VMS) --timeout 30m

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

.PHONY: target-versions
target-versions: $(foreach v,$(TARGET_VERSIONS),$(BIN)/kubernetes/$(v)/drover-kube $(BIN)/kubernetes/$(v)/kubelet) ## Build the other versions of Kubernetes that target clusters are tested with (many minutes, the first time).

$(BIN)/kubernetes/%/drover-kube: $(KUBERNETES_PINS)/%.mod $(wildcard cluster/kubernetes/*.go)
	@mkdir -p $(@D)
	@cd cluster/kubernetes && $(STEP) "Kubernetes $*" 300 go build -v -modfile=versions/$*.mod -ldflags "$(call kube_ldflags,$*)" -o $@ .

$(BIN)/kubernetes/%/kubelet: $(KUBERNETES_PINS)/%.mod
	@mkdir -p $(@D)
	cd cluster/kubernetes && go build -modfile=versions/$*.mod -ldflags "$(call kube_ldflags,$*)" -o $@ k8s.io/kubernetes/cmd/kubelet

PIN ?=
.PHONY: pin-kubernetes
pin-kubernetes: ## Pin another version of Kubernetes for target clusters, PIN=v1.37.2, and write the tables of its feature gates and of its kubelet's fields.
	$(KUBERNETES_PINS)/pin.sh "$(PIN)"
	cd cluster/kubernetes && go test -modfile=versions/$(PIN).mod ./tables -update

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
real-vms: images $(BIN)/kubelet $(BIN)/plugins ## Build the images of the local cloud's real VMs, and what they download (minutes, the first time).
	$(BIN)/vm-image mirror --dir $(REAL_VMS)/mirror --release $(KUBERNETES_VERSION) $(BIN)/kubelet
	$(BIN)/vm-image mirror --dir $(REAL_VMS)/mirror --plugins $(NETWORK_PLUGINS_VERSION) $(BIN)/plugins/*
	$(BIN)/vm-image mirror --dir $(REAL_VMS)/mirror $(PAUSE_IMAGES:%=--image %) $(BIN)/pause

.PHONY: images
images: vm-tools
	$(BIN)/vm-image build --dir $(REAL_VMS)/images $(REAL_IMAGES:%=--image %)

# The image of the short form of the end-to-end tests.
SHORT_IMAGES := debian-12-real
.PHONY: short-images
short-images:
	@$(MAKE) images REAL_IMAGES="$(SHORT_IMAGES)"

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

# Argo CD needs another version of Kubernetes' packages, which take longer to compile than its tests
# to run, so this is no part of "make test".
.PHONY: gitops
gitops: build packages $(BIN)/crossplane-cli ## Compare the verdicts of Argo CD, Flux and the Crossplane CLI on live objects (minutes to compile, the first time).
	cd test/gitops/clients && go vet ./judge && go build -ldflags "-s -w" -o $(BIN)/gitops-judge ./judge
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) go test -count=1 -timeout 30m ./test/gitops

$(BIN)/crossplane-cli: test/gitops/clients/go.mod
	@mkdir -p $(BIN)
	cd test/gitops/clients && go build -ldflags "-s -w" -o $@ github.com/crossplane/cli/v2/cmd/crossplane

.PHONY: packages
packages: binaries ## Build the Configuration, Function and Provider packages into .work/packages.
	$(BIN)/xpkg build --root $(CURDIR) --bin $(BIN) --out $(PACKAGES) --version $(VERSION)

# Where the archives will be downloaded from.
KREW_URL ?= https://github.com/drover-dev/drover/releases/download/$(VERSION)
.PHONY: krew
krew: ## Build the archives of kubectl drover for all platforms, and the manifest for krew, into .work/krew.
	go run ./internal/krew -out $(CURDIR)/$(WORK)/krew -version $(VERSION) -url $(KREW_URL)

# The packages of the release before this one, for the tests of upgrades. Nothing is released
# yet: a commit of the history stands for it, under a version that is lower. Once there is a
# release, PREVIOUS is its tag.
PREVIOUS ?= df59d596c885
PREVIOUS_VERSION := v0.0.9
previous_dir = $(CURDIR)/$(WORK)/previous/$(PREVIOUS)
.PHONY: previous
previous: $(CURDIR)/$(WORK)/previous/$(PREVIOUS)/done ## Build the packages of the release before this one, PREVIOUS=TAG, from the history (minutes, the first time).

$(CURDIR)/$(WORK)/previous/$(PREVIOUS)/done:
	@git cat-file -e '$(PREVIOUS)^{commit}' || { echo "PREVIOUS=$(PREVIOUS): the repository has no such commit; fetch the whole history" >&2; exit 1; }
	rm -rf $(previous_dir) && mkdir -p $(previous_dir)/src
	git archive $(PREVIOUS) | tar -x -C $(previous_dir)/src
	$(MAKE) -C $(previous_dir)/src packages WORK=.work VERSION=$(PREVIOUS_VERSION)
	mv $(previous_dir)/src/.work/packages $(previous_dir)/packages
	rm -rf $(previous_dir)/src/.work && touch $@

# A package of each architecture, with SBOM and licenses, signed with SIGNING_KEY: a key of
# cosign or env://NAME. What exists under the version is never overwritten. A push that was
# interrupted is continued by the same command. docs/releases.md has the steps around it.
ARCHITECTURES := amd64 arm64
RELEASE = $(CURDIR)/$(WORK)/release/$(VERSION)
released := $(patsubst package/%/crossplane.yaml,./cmd/%,$(wildcard package/*/crossplane.yaml))
.PHONY: release
release: ## Build, sign and push a release: VERSION=v0.2.0 REGISTRY=registry.example.org/drover SIGNING_KEY=cosign.key, or UNSIGNED=1 PUSH=false.
	@test "$(origin VERSION)" != file || { echo "VERSION: must be set: make release VERSION=v0.2.0" >&2; exit 1; }
	@mkdir -p $(BIN)
	cd cluster && go build -ldflags "-s -w" -o $(BIN)/ ./cmd/release
	@for a in $(ARCHITECTURES); do echo "build for linux/$$a"; \
		GOOS=linux GOARCH=$$a go build -ldflags "-s -w" -o $(CURDIR)/$(WORK)/release/bin/$$a/ $(released) || exit 1; done
	$(BIN)/release build --root $(CURDIR) --version $(VERSION) --registry $(REGISTRY) --out $(RELEASE) \
		$(foreach a,$(ARCHITECTURES),--bin $a=$(CURDIR)/$(WORK)/release/bin/$a) \
		$(if $(SIGNING_KEY),--key $(SIGNING_KEY)) $(if $(UNSIGNED),--unsigned) $(if $(ALLOW_MODIFIED),--allow-modified)
	$(if $(filter false,$(PUSH)),@echo "not pushed: PUSH=false",$(BIN)/release push --registry $(REGISTRY) $(if $(PLAIN_HTTP),--plain-http) $(RELEASE))

.PHONY: generate
generate: ## Generate deepcopy, CRDs, XRDs, docs/conditions.md, docs/reference, dashboards and the lifted provider. Leaves no diff when nothing changed.
	go generate ./...
	cd tools/dashboards && go run . $(CURDIR)/examples/monitoring/dashboards

# Hugo takes minutes to compile, so the site is no part of "make test".
$(BIN)/hugo: tools/hugo/go.mod
	@mkdir -p $(BIN)
	cd tools/hugo && go build -ldflags "-s -w" -o $@ github.com/gohugoio/hugo

SITE := $(CURDIR)/$(WORK)/site
.PHONY: site
site: $(BIN)/hugo ## Build the docs as a website into .work/site and check its links; no part of "make test" (minutes to compile Hugo, the first time).
	rm -rf $(SITE)
	$(BIN)/hugo build --source site --destination $(SITE) --noBuildLock --panicOnWarning --printPathWarnings
	DROVER_SITE=$(SITE) go test -count=1 ./test/docs/site

.PHONY: site-serve
site-serve: $(BIN)/hugo ## Serve the docs as a website on http://localhost:1313, and reload a page when its file changes.
	$(BIN)/hugo server --source site --noBuildLock

MODULES := . cluster cluster/cloud cluster/kubernetes compat/crossplane-common test/gitops/clients test/monitoring tools/dashboards tools/prose

# The Go vulnerability database: a URL, or file:// and a folder that mirrors it. Where it
# cannot be reached, the faults in test/dependencies/testdata are all that is looked for.
VULNDB ?= https://vuln.go.dev

.PHONY: lint
lint: $(BIN)/golangci-lint $(BIN)/govulncheck ## Run the linters of .golangci.yml on every module, measure the prose, and look for dependencies with known faults.
	@# Gofmt is apart: golangci-lint does not see the files of other systems and of the tag tools.
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt these:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	@# The clients of test/gitops are Argo CD's packages and one file: "make gitops" vets it.
	@for m in $(filter-out test/gitops/clients,$(MODULES)); do echo "lint $$m"; (cd $$m && $(BIN)/golangci-lint run ./...) || exit 1; done
	cd tools/prose && go run . -limits limits.txt $(CURDIR) >/dev/null
	VULNDB=$(VULNDB) GOVULNCHECK=$(BIN)/govulncheck go test -count=1 ./test/dependencies

# The limits of a folder only go down: TIGHTEN=1 lowers them to what the folder keeps now.
.PHONY: prose
prose: ## Measure the language of comments and docs by the glossary, and hold it to the limits; SHOW=say or SHOW=all prints the lines, TIGHTEN=1 lowers the limits.
	@cd tools/prose && go run . -limits limits.txt $(if $(SHOW),-show $(SHOW)) $(if $(TIGHTEN),-tighten) $(CURDIR)

$(BIN)/golangci-lint: tools/golangci/go.mod
	@mkdir -p $(BIN)
	cd tools/golangci && go build -ldflags "-s -w" -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(BIN)/govulncheck: tools/govulncheck/go.mod
	@mkdir -p $(BIN)
	cd tools/govulncheck && go build -o $@ golang.org/x/vuln/cmd/govulncheck

.PHONY: vulncheck
vulncheck: $(BIN)/govulncheck ## Tell which functions with known faults Drover's own module calls, by the database VULNDB (minutes).
	$(BIN)/govulncheck -db $(VULNDB) ./...

.PHONY: test
test: lint unit integration e2e recovery ## Run all tests: what CI runs.

# The simulator replays the same histories each time: a new one that fails is found
# by "make property", and not by who happens to change something else.
#
# The tests of the Terraform provider run it with the real Terraform and the real
# local cloud.
#
# upjet's own tests run with the versions in go.mod, which are newer than its own, and with
# compat/crossplane-common. Those of pkg/controller do not compile with this version of
# terraform-plugin-go.
.PHONY: unit
unit: binaries ## Run the tests that need no control plane.
	go test -timeout 30m ./apis/... ./cmd/... ./config/... ./hack ./test/compatibility ./test/docs/pages ./test/providers ./test/release $$(go list ./internal/... | grep -v /simulator$$)
	go test -timeout 30m ./internal/plan/simulator -rapid.seed=1 -rapid.checks=100
	go test $$(go list -deps ./cmd/... ./config/... | grep ^github.com/crossplane/upjet/v2/pkg/ | grep -v /controller$$)
	@for m in cluster cluster/cloud cluster/kubernetes test/monitoring tools/prose; do (cd $$m && DROVER_BIN=$(BIN) go test ./...) || exit 1; done

.PHONY: integration
integration: build ## Run the tests that need an API server: of provider-drover, the clouds' VMs, the local cloud.
	@dir=$$(mktemp -d) && trap "$(BIN)/drover-cluster down --dir $$dir --purge; rm -rf $$dir" EXIT && \
	$(BIN)/drover-cluster up --dir $$dir --bin $(BIN) && export KUBECONFIG_UNDER_TEST=$$dir/kubeconfig && \
	go test -count=1 -timeout 10m ./cmd/provider-drover ./test/providers && cd cluster/cloud && go test -count=1 -timeout 10m .

CHECKS ?= 10000
.PHONY: property
property: ## Run the property tests of the planners for hours, one after another: CHECKS=10000 random histories each.
	@for p in $$(awk -F'[ (]' '/^func Test/ {n = $$2} /rapid\.Check\(/ {print n}' internal/plan/simulator/*_test.go); do \
		echo "$$p"; go test ./internal/plan/simulator -run "^$$p$$" -rapid.checks=$(CHECKS) -timeout 6h || exit 1; \
	done

# The tests of a planner are built once, with all of its mutants, and run for each mutant:
# seconds for the smaller planners, minutes for deployment and set. Two processors take more
# than five minutes for all of them, so it is no part of "make unit".
PLANNERS ?=
.PHONY: mutation
mutation: ## Change operators and statements of the planners, one at a time, and find what no test of the package holds; PLANNERS=internal/plan/freeze.
	go run ./test/mutation -packages "$(PLANNERS)"

SINCE ?= main
.PHONY: mutation-changed
mutation-changed: ## The same for the planners that changed since SINCE=main.
	go run ./test/mutation -packages "$$(git diff --name-only --diff-filter=d $(SINCE) -- 'internal/plan/*.go' ':!internal/plan/simulator' | xargs -rn1 dirname | sort -u | paste -sd,)"

.PHONY: seeded
seeded: ## Apply seeded faults to a copy, one at a time, and find what the tests that own a promise do not catch; RUN=REGEXP for some, PLANES=1 also for those that need a control plane.
	go run ./test/seeded $(if $(RUN),-run '$(RUN)') $(if $(PLANES),-planes)

.PHONY: stories
stories: ## Write the traces of the planners' stories anew. Read the diff: it is the change of behaviour.
	go test ./internal/plan/simulator -run '^TestStories$$' -update

# Go compiles all dependencies anew for it, once. What it finds goes to testdata/fuzz of
# the package, and is a case of every test run from then on: commit it with its mend.
FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ## Give garbage to all that decodes what others wrote, FUZZTIME=30s to each target.
	@for p in ./internal/allow ./internal/function ./internal/plan/vm ./internal/target ./internal/terraform/plugin ./internal/userdata; do \
		for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
			echo "$$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
		done; \
	done

# The short form has all of Drover's promises. It leaves out tests that repeat one with another cloud, image or
# setting, that need a control plane of their own, or that have a target of their own: conformance, kills, skew.
#
# The packages that take longest come first: most of their time is spent waiting.
LONG ?=
.PHONY: e2e
e2e: build packages $(BIN)/crossplane-cli $(if $(LONG),previous-if-possible) real-vms-if-possible ## Run the end-to-end tests, conformance and the golden renders on a local control plane: the short form, or with LONG=1 all.
	DROVER_SHORT=$(if $(LONG),,1) DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) DROVER_PREVIOUS=$$(ls -d $(previous_dir)/packages 2>/dev/null) DROVER_REAL_VMS=$$(ls -d $(REAL_VMS) 2>/dev/null) \
		go test -count=1 -p 2 -parallel 4 -timeout $(if $(LONG),3h,60m) ./test/e2e ./test/conformance ./test/docs $$(go list ./test/... | grep -vE '/(recovery|gitops|versions|e2e|conformance|docs)$$')

# It has two control planes of its own, so it runs alone.
RECOVERY ?=
.PHONY: recovery
recovery: build packages ## Restore, move and lose control clusters whose Nodes are in use; RECOVERY="-away=1h -snapshots=20".
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) go test -count=1 -timeout $(if $(RECOVERY),6h,20m) ./test/recovery $(RECOVERY)

# It compiles each version of Kubernetes, so it is no part of "make test". If the images of real VMs cannot be
# built, only simulated VMs join.
.PHONY: versions
versions: build packages target-versions real-vms-if-possible ## Let Nodes of the other versions of Kubernetes join a target cluster, roll with its upgrade and drain (minutes to compile, the first time).
	@for v in $(TARGET_VERSIONS); do echo "test cluster/kubernetes with $$v"; (cd cluster/kubernetes && go test -modfile=versions/$$v.mod ./...) || exit 1; done
	@[ ! -d $(REAL_VMS) ] || for v in $(TARGET_VERSIONS); do \
		$(BIN)/vm-image mirror --dir $(REAL_VMS)/mirror --release $$v $(BIN)/kubernetes/$$v/kubelet || exit 1; done
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) DROVER_REAL_VMS=$$(ls -d $(REAL_VMS) 2>/dev/null) \
		go test -count=1 -timeout 60m -v ./test/versions

VELERO := $(CURDIR)/.work/velero
.PHONY: velero
velero: build packages ## Build Velero, and restore a control cluster with the commands of docs/recovery.md.
	@mkdir -p $(VELERO)/plugins
	cd test/recovery/velero && go build -ldflags "-s -w" -o $(VELERO)/ github.com/vmware-tanzu/velero/cmd/velero github.com/johannesboyne/gofakes3/cmd/gofakes3 && \
		go build -ldflags "-s -w" -o $(VELERO)/plugins/ github.com/vmware-tanzu/velero-plugin-for-aws/velero-plugin-for-aws
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) DROVER_VELERO=$(VELERO) go test -count=1 -timeout 30m ./test/recovery -v -run '^TestAControlClusterThatIsLost$$'

# A clone without its history has no release before this one.
.PHONY: previous-if-possible
previous-if-possible: binaries
	@$(MAKE) previous || echo "NO UPGRADE IS TESTED: the release before this one cannot be built, for the reason above" >&2

# Where the image of real VMs cannot be built, their test is skipped, unless
# REQUIRE_REAL_VMS is set, as in CI.
.PHONY: real-vms-if-possible
real-vms-if-possible: binaries
	@$(MAKE) real-vms $(if $(LONG),,REAL_IMAGES="$(SHORT_IMAGES)") || { rm -rf $(REAL_VMS) && [ -z "$(REQUIRE_REAL_VMS)" ] && \
		echo "NO REAL VM IS TESTED: the image cannot be built, for the reason above" >&2; }

.PHONY: conformance
conformance: build packages ## Hold all providers, or PROVIDER=aws, against what Drover promises of each, and print the table.
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) go test -count=1 -timeout 60m ./test/conformance -v \
		-run '^TestConformance$$/^$(or $(PROVIDER),.*)$$' | grep -vE '^=== (RUN|PAUSE|CONT|NAME)'

.PHONY: bench
bench: build packages ## Count API writes a Machine and bytes a response, and print them; LARGE=1 also of 1000 Machines.
	go test -run '^$$' -bench . -benchtime 1x ./internal/function/...
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) go test -run '^$$' -bench . -benchtime 1x -timeout 90m ./test/bench $(if $(LARGE),-large)

$(BIN)/benchstat: tools/benchstat/go.mod
	@mkdir -p $(BIN)
	cd tools/benchstat && go build -o $@ golang.org/x/perf/cmd/benchstat

# The rounds alternate between the trees, because the load of the machine changes over time. benchstat
# needs six of them for a confidence interval. Benchmarks outside of internal need a control plane. If
# a benchmark fails or none matches, the comparison ends: benchstat would compare the rest in silence.
BASE ?= main
COUNT ?= 6
BENCH ?= .
BENCH_PACKAGES ?= $(shell git grep --untracked -l '^func Benchmark' -- 'internal/*_test.go' | xargs -rn1 dirname | sort -u | sed 's,^,./,')
COMPARED := $(CURDIR)/$(WORK)/bench-compare
.PHONY: bench-compare
bench-compare: $(BIN)/benchstat ## Compare the Go benchmarks of the work tree with those of BASE=main, in COUNT=6 rounds; BENCH_PACKAGES=./internal/pipeline BENCH=Tag for some of them.
	@git rev-parse --quiet --verify '$(BASE)^{commit}' >/dev/null || { echo "BASE=$(BASE): the repository has no such commit" >&2; exit 1; }
	@base=$$(mktemp -d) && trap 'git worktree remove --force "$$base" 2>/dev/null; rm -rf "$$base"' EXIT && \
	git worktree add --quiet --detach "$$base" '$(BASE)' && rm -rf $(COMPARED) && mkdir -p $(COMPARED) && \
	round() { \
		local name=$$1 packages=; \
		for p in $(BENCH_PACKAGES); do [ ! -d "$${p%...}" ] || packages+=" $$p"; done; \
		[ -n "$$packages" ] || { echo "$$name: has none of the packages $(BENCH_PACKAGES)" >&2; return 1; }; \
		go test -run '^$$' -bench '$(BENCH)' -benchmem $$packages >$(COMPARED)/round.txt 2>&1 || { cat $(COMPARED)/round.txt >&2; return 1; }; \
		grep -q ^Benchmark $(COMPARED)/round.txt || { echo "$$name: no benchmark in$$packages matches BENCH=$(BENCH)" >&2; return 1; }; \
		cat $(COMPARED)/round.txt >>$(COMPARED)/$$name.txt; \
	} && \
	for i in $$(seq $(COUNT)); do \
		echo "round $$i of $(COUNT)"; \
		(cd "$$base" && round base) && round work-tree || exit 1; \
	done && \
	$(BIN)/benchstat '$(BASE)=$(COMPARED)/base.txt' 'work tree=$(COMPARED)/work-tree.txt'

.PHONY: load
load: build packages ## Measure creating, rolling, deleting and resting fleets; LOAD="create=10" measures only that.
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) go run ./test/load $(LOAD)

.PHONY: skew
skew: build packages previous ## Upgrade each package alone in the middle of a rollout, from the release before this one (PREVIOUS=TAG), and back.
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) DROVER_PREVIOUS=$(previous_dir)/packages \
		go test -count=1 -timeout 1h ./test/e2e -v -run '^TestUpgradesAmidRollouts$$' -skew-each

KILLS ?= -kill-machines=50
.PHONY: kills
kills: build packages ## Kill provider-drover while 50 Machines are created, rolled and deleted; KILLS="-kill-machines=20 -kill-seed=7".
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) go test -count=1 -timeout 2h ./test/e2e -v -run '^TestKillsLoseNothing$$' $(KILLS)

.PHONY: soak
soak: build packages ## Break a fleet of 50 at random for half an hour, and look on; SOAK="--machines=15 --duration=5m --seed=2".
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) go run ./test/soak $(SOAK)
