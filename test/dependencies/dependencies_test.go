package dependencies

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// modules of the repository, like MODULES in the Makefile. The values are packages of other
// modules that are built from the module's go.mod.
var modules = map[string][]string{
	".": nil, "cluster": {"github.com/crossplane/crossplane/v2/cmd/crossplane"}, "cluster/cloud": nil, "cluster/kubernetes": nil, "compat/crossplane-common": nil, "karpenter": nil,
	"test/gitops/clients": {"github.com/crossplane/cli/v2/cmd/crossplane"}, "test/karpenter/suites": {"sigs.k8s.io/karpenter/test/pkg/environment/common"}, "test/monitoring": nil, "tools/dashboards": nil,
	"tools/prose": nil,
}

// A fault is a known vulnerability of a module.
type fault struct {
	// ID in the database of the Go project, or of a CVE that this database does not have yet.
	ID     string `json:"id"`
	Module string `json:"module"`
	// Versions that have the fault. A first range without introduced begins with the first
	// version, and a last range without fixed has no end.
	Versions []versions `json:"versions"`
	// Packages that have the fault. Empty means all.
	Packages []string `json:"packages,omitempty"`
	// Accepted maps each module of the repository that may have the fault to the reason.
	Accepted map[string]string `json:"accepted,omitempty"`
}

type versions struct {
	Introduced string `json:"introduced,omitempty"`
	Fixed      string `json:"fixed,omitempty"`
}

func (f fault) isIn(version string) bool {
	return slices.ContainsFunc(f.Versions, func(v versions) bool {
		return (v.Introduced == "" || semver.Compare(version, v.Introduced) >= 0) && (v.Fixed == "" || semver.Compare(version, v.Fixed) < 0)
	})
}

// fixedIn returns the versions that first lack the fault.
func (f fault) fixedIn() string {
	var out []string
	for _, v := range f.Versions {
		if v.Fixed != "" {
			out = append(out, v.Fixed)
		}
	}
	return strings.Join(out, " or ")
}

// isLinked reports whether a build has a package with the fault.
func (f fault) isLinked(packages map[string]bool) bool {
	return len(f.Packages) == 0 || slices.ContainsFunc(f.Packages, func(p string) bool { return packages[p] })
}

func readFaults(t *testing.T) []fault {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "faults.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out []fault
	if err := yaml.UnmarshalStrict(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// required returns the required versions of a module of the repository. With "go 1.17" and later,
// go.mod has all modules that its packages are built from.
func required(t *testing.T, module string) map[string]string {
	t.Helper()
	m := parse(t, filepath.Join(root, module, "go.mod"))
	out := map[string]string{}
	for _, r := range m.Require {
		out[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range m.Replace {
		if out[r.Old.Path] != "" && r.New.Version != "" {
			out[r.Old.Path] = r.New.Version
		}
	}
	return out
}

// linked returns the packages that a module of the repository links, including those of its
// tests.
func linked(t *testing.T, module string) map[string]bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-test", "./..."}, modules[module]...)...)
	stderr := &bytes.Buffer{}
	cmd.Dir, cmd.Stderr = filepath.Join(root, module), stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v: %s", module, err, stderr)
	}
	out := map[string]bool{}
	for _, p := range strings.Fields(string(text)) {
		out[p] = true
	}
	return out
}

// problems returns the unaccepted faults of a module of the repository, and the accepted faults
// that it does not have.
func problems(faults []fault, module string, required map[string]string, linked func() map[string]bool) []string {
	var out []string
	for _, f := range faults {
		version := required[f.Module]
		has := version != "" && f.isIn(version) && f.isLinked(linked())
		reason, accepted := f.Accepted[module]
		switch {
		case has && !accepted:
			out = append(out, fmt.Sprintf("%s/go.mod: %s %s has %s: raise it to %s", module, f.Module, version, f.ID, f.fixedIn()))
		case accepted && !has:
			out = append(out, fmt.Sprintf("%s is accepted in %s, which does not have it: %s", f.ID, module, reason))
		}
	}
	return out
}

func TestNoModuleHasAKnownFault(t *testing.T) {
	faults := readFaults(t)
	for module := range modules {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			var packages map[string]bool
			for _, p := range problems(faults, module, required(t, module), func() map[string]bool {
				if packages == nil {
					packages = linked(t, module)
				}
				return packages
			}) {
				t.Error(p)
			}
		})
	}
}

func TestAFaultIsFound(t *testing.T) {
	grpc := fault{ID: "GO-1", Module: "grpc", Versions: []versions{{Fixed: "v1.82.2"}, {Introduced: "v1.83.0-0", Fixed: "v1.83.2"}}, Packages: []string{"grpc/transport"}}
	accepted := grpc
	accepted.Accepted = map[string]string{"m": "a reason"}
	unfixed := fault{ID: "GO-2", Module: "crypto", Versions: []versions{{}}, Packages: []string{"crypto/openpgp"}}
	for name, tc := range map[string]struct {
		fault   fault
		version string
		linked  string
		want    string
	}{
		"BeforeTheFix":               {grpc, "v1.79.3", "grpc/transport", "m/go.mod: grpc v1.79.3 has GO-1: raise it to v1.82.2 or v1.83.2"},
		"TheFix":                     {grpc, "v1.82.2", "grpc/transport", ""},
		"OfAnotherBranch":            {grpc, "v1.83.1", "grpc/transport", "m/go.mod: grpc v1.83.1 has GO-1: raise it to v1.82.2 or v1.83.2"},
		"TheFixOfAnotherBranch":      {grpc, "v1.83.2", "grpc/transport", ""},
		"APackageThatIsNotLinked":    {grpc, "v1.79.3", "grpc/codes", ""},
		"AModuleThatIsNotRequired":   {grpc, "", "grpc/transport", ""},
		"Accepted":                   {accepted, "v1.79.3", "grpc/transport", ""},
		"AcceptedAndNotLinked":       {accepted, "v1.79.3", "grpc/codes", "GO-1 is accepted in m, which does not have it: a reason"},
		"AcceptedAndFixed":           {accepted, "v1.85.0", "grpc/transport", "GO-1 is accepted in m, which does not have it: a reason"},
		"WithoutAFix":                {unfixed, "v0.57.0", "crypto/openpgp", "m/go.mod: crypto v0.57.0 has GO-2: raise it to "},
		"WithoutAFixAndNotLinked":    {unfixed, "v0.57.0", "crypto/ssh", ""},
		"AVersionWithoutARelease":    {grpc, "v0.0.0-20260101000000-abcdefabcdef", "grpc/transport", "m/go.mod: grpc v0.0.0-20260101000000-abcdefabcdef has GO-1: raise it to v1.82.2 or v1.83.2"},
		"ADevelopmentVersionOfIt":    {grpc, "v1.83.0-dev", "grpc/transport", "m/go.mod: grpc v1.83.0-dev has GO-1: raise it to v1.82.2 or v1.83.2"},
		"AReleaseCandidateOfTheFix":  {grpc, "v1.82.2-rc.1", "grpc/transport", "m/go.mod: grpc v1.82.2-rc.1 has GO-1: raise it to v1.82.2 or v1.83.2"},
		"ALaterVersionWithTheRanges": {grpc, "v1.85.0", "grpc/transport", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := problems([]fault{tc.fault}, "m", map[string]string{tc.fault.Module: tc.version}, func() map[string]bool { return map[string]bool{tc.linked: true} })
			if strings.Join(got, "\n") != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestTheListIsValid checks that each entry can match a fault and accepts nothing by mistake.
func TestTheListIsValid(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range readFaults(t) {
		if f.ID == "" || f.Module == "" || len(f.Versions) == 0 || seen[f.ID] {
			t.Errorf("%+v: id, module and versions must be set, and no id twice", f)
		}
		seen[f.ID] = true
		for _, v := range f.Versions {
			if v.Introduced != "" && !semver.IsValid(v.Introduced) || v.Fixed != "" && !semver.IsValid(v.Fixed) {
				t.Errorf("%s: versions %+v are not vX.Y.Z", f.ID, v)
			}
		}
		for _, p := range f.Packages {
			if p != f.Module && !strings.HasPrefix(p, f.Module+"/") {
				t.Errorf("%s: package %s is not of module %s", f.ID, p, f.Module)
			}
		}
		for module, reason := range f.Accepted {
			if _, ok := modules[module]; !ok || reason == "" {
				t.Errorf("%s: accepted in %q because of %q: want one of %v and a reason", f.ID, module, reason, slices.Sorted(maps.Keys(modules)))
			}
		}
	}
}

func TestTheMakefileHasTheSameModules(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "\nMODULES := " + strings.Join(slices.Sorted(maps.Keys(modules)), " ") + "\n"; !strings.Contains(string(b), want) {
		t.Errorf("the Makefile has no line %q", want)
	}
}
