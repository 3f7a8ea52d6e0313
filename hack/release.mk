##@ Release

previous_dir = $(CURDIR)/$(WORK)/previous/$(PREVIOUS)
.PHONY: previous
previous: $(CURDIR)/$(WORK)/previous/$(PREVIOUS)/done ##+ Build the packages of the release before this one, PREVIOUS=TAG, from the history (minutes, the first time).

$(CURDIR)/$(WORK)/previous/$(PREVIOUS)/done:
	@git cat-file -e '$(PREVIOUS)^{commit}' || { echo "PREVIOUS=$(PREVIOUS): the repository has no such commit; fetch the whole history" >&2; exit 1; }
	rm -rf $(previous_dir) && mkdir -p $(previous_dir)/src
	git archive $(PREVIOUS) | tar -x -C $(previous_dir)/src
	$(MAKE) -C $(previous_dir)/src packages WORK=.work VERSION=$(PREVIOUS_VERSION)
	mv $(previous_dir)/src/.work/packages $(previous_dir)/packages
	rm -rf $(previous_dir)/src/.work && touch $@

# All that a user downloads: a package of each architecture, with SBOM and licenses; kubectl drover and the Terraform
# provider for each platform; the manifests. It is signed with SIGNING_KEY, a key of cosign or env://NAME, and the
# Terraform provider also with GPG_KEY, a key of gpg, because Terraform's registry takes no other. What exists under
# the version in the registry is never overwritten. A push that was interrupted is continued by the same command.
# docs/releases.md has the steps around it.
ARCHITECTURES ?= amd64 arm64
# The platforms of kubectl drover and of the Terraform provider.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
# Where the files will be downloaded from.
DOWNLOADS ?= https://github.com/drover-dev/drover/releases/download/$(VERSION)
# The packages, by default all.
ONLY ?=
RELEASE = $(CURDIR)/$(WORK)/release/$(VERSION)
RELEASE_BIN := $(CURDIR)/$(WORK)/release/bin
released := $(patsubst package/%/crossplane.yaml,./cmd/%,$(if $(ONLY),$(patsubst %,package/%/crossplane.yaml,$(filter-out drover,$(ONLY))),$(wildcard package/*/crossplane.yaml)))
plugin_version := github.com/drover-dev/drover/internal/kubectl/command
tool_folders = $(foreach p,$(PLATFORMS),--tool $p=$(RELEASE_BIN)/$p)
define build_tools
@for p in $(PLATFORMS); do echo "build tools for $$p"; export GOOS=$${p%/*} GOARCH=$${p#*/}; \
		go build -ldflags "-s -w -X $(plugin_version).Version=$(VERSION) -X $(plugin_version).Registry=$(REGISTRY)" -o $(RELEASE_BIN)/$$p/ ./cmd/kubectl-drover && \
		go build -ldflags "-s -w -X main.version=$(patsubst v%,%,$(VERSION))" -o $(RELEASE_BIN)/$$p/ ./cmd/terraform-provider-drover || exit 1; done
endef
# The image of the demo has Kubernetes and Crossplane, which take minutes to build for each architecture.
DEMO ?= true
# The demo installs its packages under the version of the source.
demo_version = $(shell awk '/^VERSION \?=/ {print $$3}' Makefile)
demo_folders = $(if $(filter false,$(DEMO)),,$(foreach a,$(ARCHITECTURES),--demo $a=$(RELEASE_BIN)/demo-$a))
.PHONY: demo-image-files
demo-image-files: $(BIN)/crossplane-manifests
	@mkdir -p $(BIN) && cd cluster && go build -ldflags "-s -w" -o $(BIN)/ ./cmd/xpkg
	@for a in $(ARCHITECTURES); do echo "build the demo for linux/$$a"; to=$(RELEASE_BIN)/demo-$$a; export GOOS=linux GOARCH=$$a; \
		go build -ldflags "-s -w" -o $$to/bin/ ./cmd/demo ./cmd/kubectl-drover && \
		(cd cluster && go build -ldflags "-s -w" -o $$to/bin/ ./cmd/drover-cluster ./cmd/xpkg && go build -ldflags "$(CROSSPLANE_LDFLAGS)" -o $$to/bin/crossplane github.com/crossplane/crossplane/v2/cmd/crossplane) && \
		(cd cluster/cloud && go build -ldflags "-s -w" -o $$to/bin/local-cloud .) && \
		(cd cluster/kubernetes && go build -ldflags "$(call kube_ldflags,$(KUBERNETES_VERSION))" -o $$to/bin/drover-kube .) && \
		rm -rf $$to/bin/crossplane-manifests $$to/packages && cp -r $(BIN)/crossplane-manifests $$to/bin/ && \
		$(BIN)/xpkg build --root $(CURDIR) --bin $(RELEASE_BIN)/$$a --out $$to/packages --version $(demo_version) $(DEMO_PACKAGES) || exit 1; done

.PHONY: release
release: ##+ Build, sign and push a release: VERSION=v0.2.0 REGISTRY=registry.example.org/drover SIGNING_KEY=cosign.key, or UNSIGNED=1 PUSH=false.
	@test "$(origin VERSION)" != file || { echo "VERSION: must be set: make release VERSION=v0.2.0" >&2; exit 1; }
	@mkdir -p $(BIN)
	cd cluster && go build -ldflags "-s -w" -o $(BIN)/ ./cmd/release
	@for a in $(ARCHITECTURES); do echo "build packages for linux/$$a"; \
		GOOS=linux GOARCH=$$a go build -ldflags "-s -w" -o $(RELEASE_BIN)/$$a/ $(released) || exit 1; done
	$(build_tools)
	$(if $(ONLY),,@cd karpenter && for a in $(ARCHITECTURES); do echo "build drover-karpenter for linux/$$a"; \
		GOOS=linux GOARCH=$$a go build -ldflags "-s -w" -o $(RELEASE_BIN)/karpenter-$$a/ ./cmd/drover-karpenter || exit 1; done)
	$(if $(filter false,$(DEMO)),,@$(MAKE) --no-print-directory demo-image-files)
	$(BIN)/release build --root $(CURDIR) --version $(VERSION) --registry $(REGISTRY) --out $(RELEASE) --downloads $(DOWNLOADS) \
		$(foreach a,$(ARCHITECTURES),--bin $a=$(RELEASE_BIN)/$a) $(tool_folders) $(demo_folders) \
		$(if $(ONLY),,$(foreach a,$(ARCHITECTURES),--image $(RELEASE_BIN)/karpenter-$a/drover-karpenter)) $(patsubst %,--only %,$(ONLY)) \
		$(if $(SIGNING_KEY),--key $(SIGNING_KEY)) $(if $(UNSIGNED),--unsigned) $(if $(ALLOW_MODIFIED),--allow-modified)
	$(if $(GPG_KEY),cd $(RELEASE)/terraform/registry.terraform.io/drover-dev/drover && gpg --batch --yes --local-user $(GPG_KEY) --detach-sign *_SHA256SUMS)
	$(if $(filter false,$(PUSH)),@echo "not pushed: PUSH=false",$(BIN)/release push --registry $(REGISTRY) $(if $(PLAIN_HTTP),--plain-http) $(RELEASE))

# A release is a folder: one that "make release PUSH=false" made, or that was downloaded. Its kubectl drover installs
# it under the names that it was built with. If TO is another registry, Crossplane pulls the packages from there.
RELEASE_DIR ?=
TO ?=
CLOUD ?=
.PHONY: install-from
install-from: ##+ Push a release to a registry, and install it in the cluster of kubectl: RELEASE_DIR=.work/release/v0.2.0 TO=registry.example.com/drover CLOUD=hcloud.
	@for v in RELEASE_DIR:$(RELEASE_DIR) TO:$(TO) CLOUD:$(CLOUD); do test -n "$${v#*:}" || { echo "$${v%%:*}: must be set: make install-from RELEASE_DIR=.work/release/v0.2.0 TO=registry.example.com/drover CLOUD=hcloud" >&2; exit 1; }; done
	@test -f $(RELEASE_DIR)/digests.txt || { echo "RELEASE_DIR=$(RELEASE_DIR): must be the folder of a release, and has no digests.txt" >&2; exit 1; }
	@mkdir -p $(BIN)
	@cd cluster && go build -ldflags "-s -w" -o $(BIN)/ ./cmd/release
	$(BIN)/release push --mirror --registry $(TO) $(if $(PLAIN_HTTP),--plain-http) $(RELEASE_DIR)
	@rm -rf $(CURDIR)/$(WORK)/plugin && mkdir -p $(CURDIR)/$(WORK)/plugin && \
		tar -xzf $(RELEASE_DIR)/kubectl-drover-*-$$(go env GOOS)-$$(go env GOARCH).tar.gz -C $(CURDIR)/$(WORK)/plugin
	$(CURDIR)/$(WORK)/plugin/kubectl-drover install $(CLOUD) --mirror $(TO) $(INSTALL_FLAGS)

.PHONY: tools
tools: ##+ Build kubectl drover and the Terraform provider for PLATFORMS, with the manifest for krew, into .work/tools.
	@mkdir -p $(BIN)
	cd cluster && go build -ldflags "-s -w" -o $(BIN)/ ./cmd/release
	$(build_tools)
	$(BIN)/release tools --root $(CURDIR) --version $(VERSION) --registry $(REGISTRY) --out $(CURDIR)/$(WORK)/tools --downloads $(DOWNLOADS) $(tool_folders) --allow-modified

IMAGE ?=
.PHONY: karpenter-image
karpenter-image: drover-karpenter ##+ Push an image of drover-karpenter: IMAGE=registry.example.org/drover/drover-karpenter:v0.1.0.
	@test -n "$(IMAGE)" || { echo "IMAGE: must be a repository with a tag: make karpenter-image IMAGE=registry.example.org/drover/drover-karpenter:v0.1.0" >&2; exit 1; }
	@cd cluster && go build -ldflags "-s -w" -o $(BIN)/ ./cmd/xpkg
	@$(BIN)/xpkg image --binary $(BIN)/drover-karpenter $(IMAGE)
