package release

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A workflow is the part of a file of GitHub Actions that a release depends on.
type workflow struct {
	Env  map[string]string
	Jobs map[string]struct {
		Env   map[string]string
		Steps []struct {
			Name, Uses, Run string
			Env             map[string]string
		}
	}
}

// actionlint judges the whole file: go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12. Here are the promises
// that it does not know.
func TestTheWorkflowOfAReleaseRunsOnlyWhatThisRepositoryPins(t *testing.T) {
	w := workflow{}
	if err := yaml.Unmarshal([]byte(read(t, ".github/workflows/release.yaml")), &w); err != nil {
		t.Fatal(err)
	}
	makefiles := read(t, "Makefile") + read(t, "hack/release.mk")
	for job, j := range w.Jobs {
		for _, s := range j.Steps {
			at := job + ": " + s.Name
			// A tag of an action may be moved to other code, which would get the keys.
			if s.Uses != "" && !regexp.MustCompile(`@[0-9a-f]{40}$`).MatchString(s.Uses) {
				t.Errorf("%s uses %s, which is not pinned by a commit", at, s.Uses)
			}
			cmd := exec.CommandContext(t.Context(), "bash", "-n")
			cmd.Stdin = strings.NewReader(s.Run)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", at, err, out)
			}
			// An expression in a script is text of the script, whoever wrote its value.
			if strings.Contains(s.Run, "${{") {
				t.Errorf("%s has an expression in its script: hand it over in env", at)
			}
			for _, m := range regexp.MustCompile(`\b([A-Z_]+)="?[$a-z]`).FindAllStringSubmatch(s.Run, -1) {
				if strings.Contains(s.Run, "make ") && !regexp.MustCompile(`(\(`+m[1]+`\)|(?m:^`+m[1]+` [:?]?=))`).MatchString(makefiles) {
					t.Errorf("%s sets %s, which no Makefile reads", at, m[1])
				}
			}
		}
	}
	if len(w.Jobs) == 0 {
		t.Error("there are no jobs")
	}
}

// All that make release needs to sign and to push is in the job, by the names that it reads.
func TestTheWorkflowOfAReleaseHandsOverTheKeys(t *testing.T) {
	text := read(t, ".github/workflows/release.yaml")
	for _, want := range []string{
		`make release VERSION="$TAG" REGISTRY="$REGISTRY" SIGNING_KEY=env://COSIGN_PRIVATE_KEY`, "COSIGN_PASSWORD: ${{ secrets.COSIGN_PASSWORD }}",
		"TAG: ${{ inputs.tag || github.ref_name }}", "GPG_KEY=", "not -path '*/packages/*'",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the workflow lacks %s", want)
		}
	}
}

// The page lists what a release has beside its packages, and the package that makes it documents the same.
func TestThePageOfReleasesListsTheFilesOfARelease(t *testing.T) {
	page, doc := read(t, "docs/releases.md"), read(t, "cluster/internal/release/doc.go")
	for _, file := range []string{"digests.txt", "checksums.txt", "cosign.pub", "drover.yaml", "kubectl-drover-VERSION-OS-ARCH.tar.gz", "drover-VERSION-manifests.tar.gz", "drover-VERSION-sources.tar.gz", "NAME-VERSION.spdx.json"} {
		if !strings.Contains(page, "`"+file+"`") || !strings.Contains(doc, file) {
			t.Errorf("%s is not in both docs/releases.md and cluster/internal/release/doc.go", file)
		}
	}
	for _, file := range []string{"terraform-provider-drover_VERSION_OS_ARCH.zip", "..._SHA256SUMS", "..._manifest.json"} {
		if !strings.Contains(page, "`"+file+"`") {
			t.Errorf("docs/releases.md lacks %s", file)
		}
	}
}
