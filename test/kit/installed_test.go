package kit

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestACopyHasTheInstallationAndNothingOfItsRun(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	kept := []string{
		"crossplane/cache/a", "kubernetes/etcd/member/snap/db", "kubernetes/pki/ca.crt", "packages/provider-x/drover-provider-x-1/provider",
		"registry/blobs/sha256:1",
	}
	left := []string{
		"crossplane/crossplane.token", "kubernetes/audit.log", "kubernetes/component.kubeconfig", "kubeconfig", "local-cloud/token",
		"logs/kubernetes.log", "packages/provider-x/kubeconfig", "packages/provider-x/token", "state.json", "witness/control/secrets.json",
	}
	for _, name := range slices.Concat(kept, left) {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(from, name), []byte(name), 0o600))
	}
	must(t, copyPlane(from, to))
	var got []string
	must(t, filepath.WalkDir(to, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(to, path)
			content, err := os.ReadFile(path)
			if string(content) != name {
				t.Errorf("%s: got %q, %v", name, content, err)
			}
			got = append(got, name)
		}
		return err
	}))
	if !slices.Equal(got, kept) {
		t.Errorf("got %q, want %q", got, kept)
	}
}

func TestAPlaneIsACopyUnlessItsInstallationIsItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		want bool
	}{
		"Default":                 {Options{Args: Limits, Target: true, Audit: true, Witness: true}, true},
		"Fresh":                   {Options{Fresh: true}, false},
		"WithoutDrover":           {Options{Bare: true}, false},
		"OfThePreviousRelease":    {Options{Previous: true}, false},
		"TwoOfOneCloud":           {Options{CloudOf: &Plane{}}, false},
		"WithObjectsFromTheStart": {Options{Before: func(context.Context, *Plane) error { return nil }}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.o.mayBeCopy(); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
