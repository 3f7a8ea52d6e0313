package main

import (
	"slices"
	"testing"
)

func TestTheTestsThatAChangeCanAffect(t *testing.T) {
	packages := []Package{
		{Dir: "internal/names", Module: ".", Tested: true},
		{Dir: "internal/plan/set", Module: ".", Deps: []string{"internal/names"}, Tested: true},
		{Dir: "internal/identity", Module: "."},
		{Dir: "cmd/provider-drover", Module: ".", Deps: []string{"internal/plan/set", "internal/names"}, Tested: true},
		{Dir: "test/e2e", Module: ".", Deps: []string{"internal/identity"}, Tested: true},
		{Dir: "test/monitoring", Module: "test/monitoring", Tested: true},
		{Dir: "cluster/cloud", Module: "cluster/cloud", Deps: []string{"internal/names"}, Tested: true},
	}
	reads := map[string][]string{
		"test/e2e":        {binaries, "examples/local"},
		"test/monitoring": {"examples/monitoring", "docs/runbook.md"},
		"test/gone":       {"examples"},
	}
	for name, tc := range map[string]struct {
		files []string
		want  []string
	}{
		"NothingChanged": {nil, nil},
		"APackageChangesAllThatAreBuiltFromIt": {
			[]string{"internal/names/names.go"},
			[]string{"cluster/cloud", "cmd/provider-drover", "internal/names", "internal/plan/set", "test/e2e"},
		},
		"ATestChangesItsOwnPackageOnly":      {[]string{"internal/names/names_test.go"}, []string{"internal/names"}},
		"TestdataChangesItsOwnPackageOnly":   {[]string{"internal/names/testdata/a/b.txt"}, []string{"internal/names"}},
		"AFileThatIsEmbeddedIsOfThePackage":  {[]string{"internal/names/words/list.txt"}, []string{"cluster/cloud", "cmd/provider-drover", "internal/names", "internal/plan/set", "test/e2e"}},
		"APackageWithoutTestsIsNotTested":    {[]string{"internal/identity/identity.go"}, []string{"test/e2e"}},
		"AFileThatATestReads":                {[]string{"docs/runbook.md"}, []string{"test/monitoring"}},
		"AFileInAFolderThatATestReads":       {[]string{"examples/local/pool.yaml"}, []string{"test/e2e"}},
		"AFileThatNoTestReads":               {[]string{"docs/runbook.md.orig", "README.md"}, nil},
		"AFileOfAPackageThatCrossplaneLoads": {[]string{"package/drover/crossplane.yaml"}, []string{"test/e2e"}},
		"AProgramOfTheLauncher":              {[]string{"cluster/internal/kube/kube.go"}, []string{"test/e2e"}},
		"ATestOfTheLauncher":                 {[]string{"cluster/internal/kube/kube_test.go"}, nil},
		"TheVersionsOfAModule":               {[]string{"test/monitoring/go.sum"}, []string{"test/monitoring"}},
		"TheVersionsOfTheRoot": {
			[]string{"go.mod"},
			[]string{"cmd/provider-drover", "internal/names", "internal/plan/set", "test/e2e"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := affected(tc.files, packages, reads); !slices.Equal(got, tc.want) {
				t.Errorf("affected are %q, want %q", got, tc.want)
			}
		})
	}
}
