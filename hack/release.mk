##@ Release

# Where the archives will be downloaded from.
KREW_URL ?= https://github.com/drover-dev/drover/releases/download/$(VERSION)
.PHONY: krew
krew: ##+ Build the archives of kubectl drover for all platforms, and the manifest for krew, into .work/krew.
	go run ./internal/krew -out $(CURDIR)/$(WORK)/krew -version $(VERSION) -url $(KREW_URL)

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

# A package of each architecture, with SBOM and licenses, signed with SIGNING_KEY: a key of
# cosign or env://NAME. What exists under the version is never overwritten. A push that was
# interrupted is continued by the same command. docs/releases.md has the steps around it.
ARCHITECTURES := amd64 arm64
RELEASE = $(CURDIR)/$(WORK)/release/$(VERSION)
released := $(patsubst package/%/crossplane.yaml,./cmd/%,$(wildcard package/*/crossplane.yaml))
.PHONY: release
release: ##+ Build, sign and push a release: VERSION=v0.2.0 REGISTRY=registry.example.org/drover SIGNING_KEY=cosign.key, or UNSIGNED=1 PUSH=false.
	@test "$(origin VERSION)" != file || { echo "VERSION: must be set: make release VERSION=v0.2.0" >&2; exit 1; }
	@mkdir -p $(BIN)
	cd cluster && go build -ldflags "-s -w" -o $(BIN)/ ./cmd/release
	@for a in $(ARCHITECTURES); do echo "build for linux/$$a"; \
		GOOS=linux GOARCH=$$a go build -ldflags "-s -w" -o $(CURDIR)/$(WORK)/release/bin/$$a/ $(released) || exit 1; done
	$(BIN)/release build --root $(CURDIR) --version $(VERSION) --registry $(REGISTRY) --out $(RELEASE) \
		$(foreach a,$(ARCHITECTURES),--bin $a=$(CURDIR)/$(WORK)/release/bin/$a) \
		$(if $(SIGNING_KEY),--key $(SIGNING_KEY)) $(if $(UNSIGNED),--unsigned) $(if $(ALLOW_MODIFIED),--allow-modified)
	$(if $(filter false,$(PUSH)),@echo "not pushed: PUSH=false",$(BIN)/release push --registry $(REGISTRY) $(if $(PLAIN_HTTP),--plain-http) $(RELEASE))
