package dependencies

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestThePinsOfAVersionOfKubernetesAreOfThatVersion checks the files that "make pin-kubernetes" writes: all
// modules of Kubernetes have the version of the file, and the same modules are required as in go.mod.
func TestThePinsOfAVersionOfKubernetesAreOfThatVersion(t *testing.T) {
	folder := filepath.Join(root, "cluster", "kubernetes")
	pins, err := filepath.Glob(filepath.Join(folder, "versions", "*.mod"))
	if err != nil || len(pins) == 0 {
		t.Fatalf("no pins: %v", err)
	}
	own := parse(t, filepath.Join(folder, "go.mod"))
	for _, file := range pins {
		version := strings.TrimSuffix(filepath.Base(file), ".mod")
		t.Run(version, func(t *testing.T) {
			pinned := parse(t, file)
			if pinned.Module.Mod.Path != own.Module.Mod.Path || pinned.Go.Version != own.Go.Version {
				t.Errorf("%s, go %s, want %s, go %s", pinned.Module.Mod.Path, pinned.Go.Version, own.Module.Mod.Path, own.Go.Version)
			}
			if got, want := direct(pinned), direct(own); !slices.Equal(got, want) {
				t.Errorf("it requires %v, and go.mod %v: run \"make pin-kubernetes PIN=%s\"", got, want, version)
			}
			replaced := map[string]string{}
			for _, r := range pinned.Replace {
				replaced[r.Old.Path] = r.New.Version
				if r.New.Path != r.Old.Path || r.New.Version != "v0."+strings.TrimPrefix(version, "v1.") {
					t.Errorf("%s is replaced by %s, which is not of %s", r.Old.Path, r.New, version)
				}
			}
			for _, r := range pinned.Require {
				switch {
				case r.Mod.Path == "k8s.io/kubernetes" && r.Mod.Version != version:
					t.Errorf("it requires Kubernetes %s", r.Mod.Version)
				case r.Mod.Version == "v0.0.0" && replaced[r.Mod.Path] == "":
					t.Errorf("%s is a staging module of Kubernetes and has no version", r.Mod.Path)
				}
			}
		})
	}
}

func parse(t *testing.T, file string) *modfile.File {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := modfile.Parse(file, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// direct returns the paths of the modules that a module requires directly.
func direct(m *modfile.File) []string {
	var out []string
	for _, r := range m.Require {
		if !r.Indirect {
			out = append(out, r.Mod.Path)
		}
	}
	slices.Sort(out)
	return out
}
