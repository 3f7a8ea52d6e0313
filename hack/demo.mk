##@ Demo

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
preflight: ##+ Check what the demo needs: Go, free disk space, free ports. PREFLIGHT=no skips it.
	@$(if $(filter no,$(PREFLIGHT)),:,hack/preflight $(WORK))

.PHONY: recording
recording: build packages ##+ Record the demo of the README anew: needs asciinema and npm.
	@hack/record

.PHONY: demo-down
demo-down: ## Stop the demo and delete all that it made.
	@if [ -x $(BIN)/drover-cluster ]; then $(BIN)/drover-cluster down --dir $(CLUSTER) --purge; else rm -rf $(CLUSTER); fi

FAULT ?=
.PHONY: demo-break
demo-break: ##+ Break the cloud of the demo, FAULT=quota; without FAULT a menu of ten faults, FAULT=none ends all.
	@test -x $(BIN)/demo || { echo "no demo runs, start it with make demo" >&2; exit 1; }
	@$(BIN)/demo --launcher $(BIN)/drover-cluster --dir $(CLUSTER) --break --fault '$(FAULT)'

.PHONY: demo-real
demo-real: REAL_IMAGES := debian-12-real
demo-real: preflight demo-binaries demo-packages real-vms ##+ Start a local control plane and let three real Debian machines join, run a pod each, roll and go.
	@$(BIN)/demo --launcher $(BIN)/drover-cluster --dir $(CLUSTER) --packages $(PACKAGES) --real-vms $(REAL_VMS) --timeout 30m

.PHONY: demo-karpenter
demo-karpenter: drover-karpenter ##+ Run Karpenter in the demo, until Ctrl-C: pods that do not fit get Machines.
	@hack/demo-karpenter $(BIN) $(CLUSTER)
