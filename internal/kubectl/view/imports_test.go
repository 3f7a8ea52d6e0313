package view_test

import (
	"go/build"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatDecidesIsPure keeps clients and the clock out of the packages that explain, plan and decide.
func TestWhatDecidesIsPure(t *testing.T) {
	for _, pkg := range []string{"view", "advice", "diagnosis", "action", "forecast"} {
		p, err := build.ImportDir(filepath.Join("..", pkg), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range p.Imports {
			for _, forbidden := range []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/cli-runtime", "internal/kubectl/collect", "internal/kubectl/command"} {
				if strings.Contains(imported, forbidden) {
					t.Errorf("%s imports %s", pkg, imported)
				}
			}
		}
		for _, name := range p.GoFiles {
			file := filepath.Join("..", pkg, name)
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, clock := range []string{"time.Now(", "time.Since(", "metav1.Now("} {
				if strings.Contains(string(b), clock) {
					t.Errorf("%s reads the clock: %s", file, clock)
				}
			}
		}
	}
}
