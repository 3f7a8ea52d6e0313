package main

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/localplane"
)

// TestTheMakefileBuildsThePackagesThatTheDemoInstalls compares the packages of the demo in hack/demo.mk with those that it
// installs and their dependencies.
func TestTheMakefileBuildsThePackagesThatTheDemoInstalls(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	m := regexp.MustCompile(`(?m)^DEMO_PACKAGES := (.+)$`).FindStringSubmatch(read("../../hack/demo.mk"))
	if m == nil {
		t.Fatal("hack/demo.mk has no DEMO_PACKAGES")
	}
	built := strings.Fields(m[1])
	dependency := regexp.MustCompile(`package: \$\{REGISTRY\}/(\S+)`)
	var want []string
	for _, p := range localplane.Packages {
		name, _, _ := strings.Cut(path.Base(p[1]), ":")
		meta := "../../package/" + name + "/crossplane.yaml"
		if p[0] == "configuration" {
			meta = "../../crossplane.yaml"
		}
		want = append(want, name)
		for _, d := range dependency.FindAllStringSubmatch(read(meta), -1) {
			want = append(want, d[1])
		}
	}
	slices.Sort(built)
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(built, want) {
		t.Errorf("the Makefile builds %v, and the demo installs %v", built, want)
	}
}
