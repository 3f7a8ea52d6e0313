package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-dev/drover/test/kit"
)

var (
	installs = regexp.MustCompile(`crossplane xpkg install (provider|configuration|function) \S*/([a-z-]+):`)
	waits    = regexp.MustCompile(`kubectl wait (provider|configuration|function)\.pkg\.crossplane\.io/drover-([a-z-]+) --for=condition=Healthy`)
)

// unhealthy returns the packages that a block installs without waiting until they are healthy, before it does anything
// else. The kinds of a package do not exist until then, so the next command would fail on a slow computer.
func unhealthy(b Block) []string {
	var out []string
	lines := strings.Split(strings.TrimSuffix(b.Script, "\n"), "\n")
	for i, line := range lines {
		m := installs.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		next := ""
		if i+1 < len(lines) {
			next = lines[i+1]
		}
		if w := waits.FindStringSubmatch(next); w == nil || w[1] != m[1] || w[2] != m[2] {
			out = append(out, fmt.Sprintf("%s: %s %s is installed, and the next line does not wait until it is Healthy", b, m[1], m[2]))
		}
	}
	return out
}

func TestEachPageWaitsForThePackagesThatItInstalls(t *testing.T) {
	blocks, err := Read(kit.Root())
	must(t, err)
	n := 0
	for _, b := range blocks {
		n += len(installs.FindAllString(b.Script, -1))
		for _, fault := range unhealthy(b) {
			t.Error(fault)
		}
	}
	if n < 10 {
		t.Errorf("only %d installations were found", n)
	}
}

// A script is a block without a page. "xpkg install" of this repository and "kubectl drover install" wait by themselves.
func TestEachScriptWaitsForThePackagesThatItInstalls(t *testing.T) {
	scripts := 0
	for _, dir := range []string{"Makefile", "hack", "examples", "site", ".github", ".ci"} {
		must(t, filepath.WalkDir(filepath.Join(kit.Root(), dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) == ".md" {
				return err
			}
			scripts++
			b, err := os.ReadFile(path)
			for _, fault := range unhealthy(Block{Page: path, Script: string(b)}) {
				t.Error(fault)
			}
			return err
		}))
	}
	if scripts < 100 {
		t.Errorf("only %d files were read", scripts)
	}
}

func TestABlockThatDoesNotWaitIsFound(t *testing.T) {
	const install, wait = "crossplane xpkg install provider $REGISTRY/provider-x:$VERSION\n", "kubectl wait provider.pkg.crossplane.io/drover-provider-x --for=condition=Healthy --timeout=5m\n"
	for name, tc := range map[string]struct {
		script string
		faults int
	}{
		"ItWaits":                    {install + wait + "kubectl apply -f x.yaml\n", 0},
		"ItDoesNot":                  {install + "kubectl apply -f x.yaml\n", 1},
		"ItWaitsAfterwards":          {install + "kubectl apply -f x.yaml\n" + wait, 1},
		"ItWaitsForAnother":          {install + strings.Replace(wait, "provider-x", "provider-y", 1), 1},
		"TheNextBlockNeedsIt":        {install, 1},
		"ItInstallsNothing":          {"kubectl apply -f x.yaml\n", 0},
		"TheSecondOfTwoIsNotAwaited": {install + wait + install, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unhealthy(Block{Script: tc.script}); len(got) != tc.faults {
				t.Errorf("faults %q, want %d", got, tc.faults)
			}
		})
	}
}
