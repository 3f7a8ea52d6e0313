// Package release checks that texts of the repository agree with the variables of its build.
package release

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/kubectl/command"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/internal/terraform/drover"
)

const root = "../.."

// variable of the Makefile.
func variable(t *testing.T, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + ` \??:?= (\S+)$`).FindStringSubmatch(read(t, "Makefile"))
	if m == nil {
		t.Fatalf("the Makefile sets no %s", name)
	}
	return m[1]
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// mayNameTheRegistry are the files that may contain the default registry, and why each cannot use
// a variable.
var mayNameTheRegistry = map[string]string{
	"Makefile":                                              "the variable",
	"cluster/internal/xpkg/meta.go":                         "the default of the build",
	"manifests.go":                                          "the name in the embedded manifests",
	"package/provider-drover/runtime.yaml":                  "applied as it is from the source; the build sets the registry in the manifests of a release",
	"package/provider-inventory/runtime.yaml":               "as that of provider-drover",
	"package/provider-drover/rbac-provider-clusterapi.yaml": "as that of provider-drover",
	"docs/install.md":                                       "sets the variable of all commands",
	"docs/releases.md":                                      "sets the variable, and has a prefix in an object",
	"examples/production/availability.yaml":                 "has a prefix in an object",
	"examples/karpenter/target-cluster.yaml":                "applied as it is from the source; the build sets the registry in the manifests of a release",
	"examples/render/functions.yaml":                        "has a prefix in an object, which is not installed",
}

func TestNoOtherRegistryThanTheVariable(t *testing.T) {
	registry := variable(t, "REGISTRY")
	host, _, _ := strings.Cut(registry, "/")
	out, err := exec.Command("git", "-C", root, "grep", "-I", "-l", "-F", "-e", host, "--", ":!*_test.go", ":!.work").Output()
	if err != nil {
		t.Fatalf("git grep: %v", err)
	}
	files := strings.Fields(string(out))
	for _, file := range files {
		if mayNameTheRegistry[file] == "" {
			t.Errorf("%s names the registry %s: write $REGISTRY, or ${REGISTRY} in metadata of packages", file, host)
		}
		for _, m := range regexp.MustCompile(regexp.QuoteMeta(host)+`[a-z0-9/-]*`).FindAllString(read(t, file), -1) {
			if m != registry && !strings.HasPrefix(m, registry+"/") {
				t.Errorf("%s has %s, and the Makefile the registry %s", file, m, registry)
			}
		}
	}
	for file := range mayNameTheRegistry {
		if !slices.Contains(files, file) {
			t.Errorf("%s does not name the registry any more: take it off the list", file)
		}
	}
	if localplane.Registry != registry {
		t.Errorf("local control planes have the registry %s, and the Makefile %s", localplane.Registry, registry)
	}
}

func TestDocsSetTheVariablesOfTheMakefile(t *testing.T) {
	want := "export REGISTRY=" + variable(t, "REGISTRY") + " VERSION=" + variable(t, "VERSION") + "\n"
	for _, file := range []string{"docs/install.md", "docs/releases.md"} {
		if !strings.Contains(read(t, file), want) {
			t.Errorf("%s lacks: %s", file, want)
		}
	}
}

func TestProgramsOfTheSourceHaveTheVersionOfTheMakefile(t *testing.T) {
	for program, version := range map[string]string{"kubectl drover install": command.Version, "local control planes": localplane.Version} {
		if want := variable(t, "VERSION"); version != want {
			t.Errorf("%s has %s, and the Makefile %s", program, version, want)
		}
	}
	if command.Registry != variable(t, "REGISTRY") {
		t.Errorf("kubectl drover install has the registry %s", command.Registry)
	}
}

// The mirror of providers has the name that the provider answers to.
func TestTheTerraformProviderIsInTheFolderOfItsAddress(t *testing.T) {
	if want := "terraform/" + drover.Address; !strings.Contains(read(t, "cluster/internal/release/tools.go"), `"`+want+`"`) {
		t.Errorf("cluster/internal/release/tools.go has no folder %s", want)
	}
}

// A command with a fixed version is wrong after the next release.
func TestCommandsOfTheDocsHaveNoFixedVersionOfAPackage(t *testing.T) {
	fixed := regexp.MustCompile(`xpkg (install|update) \S+ \S+:v\d`)
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		b, err := os.ReadFile(path)
		for _, m := range fixed.FindAll(b, -1) {
			t.Errorf("%s: %q: write $VERSION", path, m)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheCompatibilityTableIsThatOfTheBuild(t *testing.T) {
	page := read(t, "docs/releases.md")
	for what, want := range map[string]string{
		"Kubernetes":         variable(t, "KUBERNETES_VERSION"),
		"Crossplane":         variable(t, "CROSSPLANE_VERSION"),
		"crossplane-runtime": required(t, "github.com/crossplane/crossplane-runtime/v2"),
		"upjet":              required(t, "github.com/crossplane/upjet/v2"),
		"function-sdk-go":    required(t, "github.com/crossplane/function-sdk-go"),
		"controller-runtime": required(t, "sigs.k8s.io/controller-runtime"),
		"k8s.io":             required(t, "k8s.io/api"),
	} {
		if !regexp.MustCompile(`(?s)is built and tested with .*?\b` + regexp.QuoteMeta(what+" "+want) + `\b`).MatchString(page) {
			t.Errorf("docs/releases.md does not have %s %s", what, want)
		}
	}
	pins, err := filepath.Glob(filepath.Join(root, "cluster", "kubernetes", "versions", "*.mod"))
	if err != nil || len(pins) == 0 {
		t.Fatalf("no other version of Kubernetes is pinned: %v", err)
	}
	_, targets, _ := strings.Cut(page, "with target clusters of Kubernetes ")
	targets, _, _ = strings.Cut(targets, ". ")
	for _, p := range pins {
		if v := strings.TrimSuffix(filepath.Base(p), ".mod"); !strings.Contains(targets, v) {
			t.Errorf("docs/releases.md does not have target clusters of Kubernetes %s", v)
		}
	}
	minor := regexp.MustCompile(`^v\d+\.\d+`).FindString(variable(t, "VERSION"))
	if !strings.Contains(page, "| "+minor+" | ") {
		t.Errorf("docs/releases.md: the table of compatibility has no row of %s", minor)
	}
}

// required is the version of a module in go.mod.
func required(t *testing.T, module string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\s+` + regexp.QuoteMeta(module) + ` (v\S+)`).FindStringSubmatch(read(t, "go.mod"))
	if m == nil {
		t.Fatalf("go.mod does not require %s", module)
	}
	return m[1]
}

// The docs list exactly the packages that the Makefile releases.
func TestEveryPackageIsOnThePageOfReleases(t *testing.T) {
	metas, err := filepath.Glob(filepath.Join(root, "package", "*", "crossplane.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(metas) < 6 {
		t.Fatalf("found %d packages", len(metas))
	}
	page := []byte(read(t, "docs/releases.md"))
	for _, meta := range metas {
		if name := filepath.Base(filepath.Dir(meta)); !bytes.Contains(page, []byte("`"+name+"`")) {
			t.Errorf("docs/releases.md does not list the package %s", name)
		}
	}
}
