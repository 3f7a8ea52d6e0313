##@ Docs site

# Hugo takes minutes to compile, so the site is no part of "make test".
$(BIN)/hugo: tools/hugo/go.mod
	@mkdir -p $(BIN)
	cd tools/hugo && go build -ldflags "-s -w" -o $@ github.com/gohugoio/hugo

SITE := $(CURDIR)/$(WORK)/site
# The pages name the version that they document: the tag of the commit, or what hugo.toml has.
SITE_TAG = $(shell git describe --tags --exact-match 2>/dev/null)
SITE_ENV = $(if $(SITE_TAG),HUGO_PARAMS_VERSION=$(SITE_TAG) HUGO_PARAMS_BRANCH=$(SITE_TAG))
.PHONY: site
site: $(BIN)/hugo ##+ Build the docs as a website into .work/site and check its links; no part of "make test" (minutes to compile Hugo, the first time).
	rm -rf $(SITE)
	$(SITE_ENV) $(BIN)/hugo build --source site --destination $(SITE) --noBuildLock --panicOnWarning --printPathWarnings
	DROVER_SITE=$(SITE) go test -count=1 ./test/docs/site

.PHONY: site-serve
site-serve: $(BIN)/hugo ##+ Serve the docs as a website on http://localhost:1313, and reload a page when its file changes.
	$(BIN)/hugo server --source site --noBuildLock
