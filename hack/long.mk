##@ Long tests and measurements

.PHONY: target-versions
target-versions: $(foreach v,$(TARGET_VERSIONS),$(BIN)/kubernetes/$(v)/drover-kube $(BIN)/kubernetes/$(v)/kubelet) ##+ Build the other versions of Kubernetes that target clusters are tested with (many minutes, the first time).

$(BIN)/kubernetes/%/drover-kube: $(KUBERNETES_PINS)/%.mod $(wildcard cluster/kubernetes/*.go)
	@mkdir -p $(@D)
	@cd cluster/kubernetes && $(STEP) "Kubernetes $*" 300 go build -v -modfile=versions/$*.mod -ldflags "$(call kube_ldflags,$*)" -o $@ .

$(BIN)/kubernetes/%/kubelet: $(KUBERNETES_PINS)/%.mod
	@mkdir -p $(@D)
	cd cluster/kubernetes && go build -modfile=versions/$*.mod -ldflags "$(call kube_ldflags,$*)" -o $@ k8s.io/kubernetes/cmd/kubelet

PIN ?=
.PHONY: pin-kubernetes
pin-kubernetes: ##+ Pin another version of Kubernetes for target clusters, PIN=v1.37.2, and write the tables of its feature gates and of its kubelet's fields.
	$(KUBERNETES_PINS)/pin.sh "$(PIN)"
	cd cluster/kubernetes && go test -modfile=versions/$(PIN).mod ./tables -update

# Argo CD needs another version of Kubernetes' packages, which take longer to compile than its tests
# to run, so this is no part of "make test".
.PHONY: gitops
gitops: build packages $(BIN)/crossplane-cli ##+ Compare the verdicts of Argo CD, Flux and the Crossplane CLI on live objects (minutes to compile, the first time).
	cd test/gitops/clients && go vet ./judge && go build -ldflags "-s -w" -o $(BIN)/gitops-judge ./judge
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) go test -count=1 -timeout 30m ./test/gitops

# The OpenStack is in a folder below OPENSTACK, and only root can build and start it. The packages share it, one after the other.
OPENSTACK := $(CURDIR)/$(WORK)/openstack
MIRROR ?=
KEEP ?=
RECORD ?=
CONFORMANCE ?=
OPENSTACK_CONFORMANCE := go test -count=1 -timeout 120m ./test/conformance -v -run '^(TestConformance|TestRealOpenStack.*)$$/^openstack-real$$'
.PHONY: openstack
openstack: $(if $(CONFORMANCE),$(if $(BUILT),,build packages)) ##+ Build a real OpenStack from Debian's packages, compare its answers with the recorded ones, let the provider create, reboot and delete instances there and kill it meanwhile, and delete it (root, half an hour). CONFORMANCE=1 runs the conformance suite against it, MIRROR=URL of Debian, KEEP=1 keeps the packages, RECORD=1 records the answers.
	@mkdir -p $(BIN)
	go build -ldflags "-s -w" -o $(BIN)/openstack ./test/openstack
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) $(BIN)/openstack exec --dir $(OPENSTACK) $(if $(MIRROR),--mirror "$(MIRROR)") $(if $(KEEP),--keep) -- \
		$(if $(RECORD),go test -count=1 ./test/fakes/openstack -run TestTheAnswersAre -args -record,$(if $(CONFORMANCE),$(OPENSTACK_CONFORMANCE),go test -count=1 -p 1 -timeout 90m ./test/fakes/openstack ./internal/controller/openstack -v -run ARealOpenStack))

.PHONY: vulncheck
vulncheck: $(BIN)/govulncheck ##+ Tell which functions with known faults Drover's own module calls, by the database VULNDB (minutes).
	$(BIN)/govulncheck -db $(VULNDB) ./...

CHECKS ?= 10000
.PHONY: property
property: ##+ Run the property tests of the planners for hours, one after another: CHECKS=10000 random histories each.
	@for p in $$(awk -F'[ (]' '/^func / {n = ""} /^func Test/ {n = $$2} n && /(rapid\.Check|checkSome)\(/ {print n; n = ""}' internal/plan/simulator/*_test.go); do \
		echo "$$p"; go test ./internal/plan/simulator -run "^$$p$$" -rapid.checks=$(CHECKS) -timeout 6h || exit 1; \
	done

# The tests of a planner are built once, with all of its mutants, and run for each mutant:
# seconds for the smaller planners, minutes for deployment and set. Two processors take more
# than five minutes for all of them, so it is no part of "make unit".
PLANNERS ?=
FILES ?=
.PHONY: mutation
mutation: ##+ Change operators and statements of the planners, one at a time, and find what no test of the package holds; PLANNERS=internal/plan/freeze, and FILES=REGEXP for some of its files.
	go run ./test/mutation -packages "$(PLANNERS)" -files "$(FILES)"

.PHONY: mutation-changed
mutation-changed: ##+ The same for the planners that changed since SINCE=main.
	go run ./test/mutation -packages "$$(git diff --name-only --diff-filter=d $(SINCE) -- 'internal/plan/*.go' 'internal/schedule/*.go' ':!internal/plan/simulator' | xargs -rn1 dirname | sort -u | paste -sd,)"

.PHONY: seeded
seeded: ##+ Apply seeded faults to a copy, one at a time, and find what the tests that own a promise do not catch; RUN=REGEXP for some, PLANES=1 also for those that need a control plane.
	go run ./test/seeded $(if $(RUN),-run '$(RUN)') $(if $(PLANES),-planes)

# Parts of "make test", each run N times, and beside STRESS busy processes.
N ?= 20
STRESS ?= 0
FLAKY_PARTS ?= unit
.PHONY: flakes
flakes: ##+ Run parts of the tests N=20 times and count what failed how often; FLAKY_PARTS="unit e2e", STRESS=4 beside four busy processes.
	@mkdir -p $(WORK); rm -f $(WORK)/flakes.log; busy=; trap 'kill $$busy 2>/dev/null' EXIT; \
	for i in $$(seq $(STRESS)); do while :; do :; done & busy="$$busy $$!"; done; \
	for i in $$(seq $(N)); do for p in $(FLAKY_PARTS); do \
		$(SUBMAKE) --no-print-directory $$p GOFLAGS="$(GOFLAGS) -count=1" >>$(WORK)/flakes.log 2>&1 && echo "run $$i: $$p passed" || echo "run $$i: $$p failed"; \
	done; done; \
	echo "failures in $(N) runs, beside $(STRESS) busy processes:"; \
	grep -hoE '^ *--- FAIL: [^ ]+|^panic: .*|^(FAIL|---) .*build failed.*' $(WORK)/flakes.log | sed 's/^ *//' | sort | uniq -c | sort -rn; \
	! grep -qE '^(FAIL|panic: )' $(WORK)/flakes.log

.PHONY: stories
stories: ##+ Write the traces of the planners' stories anew. Read the diff: it is the change of behaviour.
	go test ./internal/plan/simulator -run '^TestStories$$' -update

# Go compiles all dependencies anew for it, once. What it finds goes to testdata/fuzz of
# the package, and is a case of every test run from then on: commit it with its mend.
FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ##+ Give garbage to all that decodes what others wrote, FUZZTIME=30s to each target.
	@for p in ./internal/allow ./internal/function ./internal/plan/vm ./internal/target ./internal/terraform/plugin ./internal/userdata; do \
		for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
			echo "$$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
		done; \
	done

# It compiles each version of Kubernetes, so it is no part of "make test". If the images of real VMs cannot be
# built, only simulated VMs join.
.PHONY: versions
versions: build packages target-versions real-vms-if-possible ##+ Let Nodes of the other versions of Kubernetes join a target cluster, roll with its upgrade and drain (minutes to compile, the first time).
	@for v in $(TARGET_VERSIONS); do echo "test cluster/kubernetes with $$v"; (cd cluster/kubernetes && go test -modfile=versions/$$v.mod ./...) || exit 1; done
	@[ ! -d $(REAL_VMS) ] || for v in $(TARGET_VERSIONS); do \
		$(BIN)/vm-image mirror --dir $(REAL_VMS)/mirror --release $$v $(BIN)/kubernetes/$$v/kubelet || exit 1; done
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) DROVER_REAL_VMS=$$(ls -d $(REAL_VMS) 2>/dev/null) \
		go test -count=1 -timeout 60m -v ./test/versions

# Karpenter's own suites, as its module has them. Most of the time they wait: for timeouts of 15 minutes, and to see that
# nothing happens for some minutes. So they are no part of "make test".
SUITES ?= regression
FOCUS ?=
.PHONY: karpenter-suites
karpenter-suites: build packages drover-karpenter ##+ Run Karpenter's own suite regression, unmodified, against drover-karpenter, FOCUS=REGEXP for some of its specs (two hours).
	@for s in $(SUITES); do echo "build the suite $$s"; (cd test/karpenter/suites && \
		go test -c -ldflags "-s -w" -o $(BIN)/karpenter-$$s.test sigs.k8s.io/karpenter/test/suites/$$s) || exit 1; done
	@code=0; for s in $(SUITES); do \
		DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) go test -vet=off -count=1 -timeout 6h -v ./test/karpenter -run '^TestKarpentersOwnSuite$$' -args -suite $$s -focus '$(FOCUS)' || code=1; \
	done; exit $$code

VELERO := $(CURDIR)/.work/velero
.PHONY: velero
velero: build packages ##+ Build Velero, and restore a control cluster with the commands of docs/recovery.md.
	@mkdir -p $(VELERO)/plugins
	cd test/recovery/velero && go build -ldflags "-s -w" -o $(VELERO)/ github.com/vmware-tanzu/velero/cmd/velero github.com/johannesboyne/gofakes3/cmd/gofakes3 && \
		go build -ldflags "-s -w" -o $(VELERO)/plugins/ github.com/vmware-tanzu/velero-plugin-for-aws/velero-plugin-for-aws
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) DROVER_VELERO=$(VELERO) go test -count=1 -timeout 30m ./test/recovery -v -run '^TestAControlClusterThatIsLost$$'

.PHONY: bench
bench: build packages ##+ Count API writes a Machine and bytes a response, and print them; LARGE=1 also of 1000 Machines.
	go test -run '^$$' -bench . -benchtime 1x ./internal/function/...
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) go test -run '^$$' -bench . -benchtime 1x -timeout 90m ./test/load $(if $(LARGE),-large)

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
bench-compare: $(BIN)/benchstat ##+ Compare the Go benchmarks of the work tree with those of BASE=main, in COUNT=6 rounds; BENCH_PACKAGES=./internal/pipeline BENCH=Tag for some of them.
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
load: build packages ##+ Measure creating, rolling, deleting and resting fleets; LOAD="create=10" measures only that.
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) go run ./test/load $(LOAD)

.PHONY: skew
skew: build packages previous ##+ Upgrade each package alone in the middle of a rollout, from the release before this one (PREVIOUS=TAG), and back.
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) DROVER_PREVIOUS=$(previous_dir)/packages \
		go test -count=1 -timeout 1h ./test/e2e -v -run '^TestUpgradesAmidRollouts$$' -skew-each

KILLS ?= -kill-machines=50
.PHONY: kills
kills: build packages ##+ Kill provider-drover while 50 Machines are created, rolled and deleted; KILLS="-kill-machines=20 -kill-seed=7".
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) go test -count=1 -timeout 2h ./test/e2e -v -run '^TestKillsLoseNothing$$' $(KILLS)

.PHONY: soak
soak: build packages ##+ Break a fleet of 50 at random for half an hour, and look on; SOAK="--machines=15 --duration=5m --seed=2".
	DROVER_BIN=$(BIN) DROVER_PACKAGES=$(PACKAGES) go run ./test/soak $(SOAK)
