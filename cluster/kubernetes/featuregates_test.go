package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/version"
	_ "k8s.io/kubernetes/pkg/features"
)

var update = flag.Bool("update", false, "write the tables of feature gates anew")

// Drover refuses classes by these tables. Those of other versions are tested by -modfile.
func TestTheTableOfFeatureGatesIsThatOfTheKubelet(t *testing.T) {
	var lines []string
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		line := string(name)
		if spec.LockToDefault {
			line = fmt.Sprintf("%s %t", name, spec.Default)
		}
		lines = append(lines, line+"\n")
	}
	slices.Sort(lines)
	got := strings.Join(lines, "")

	file := "../../internal/userdata/featuregates/v" + version.DefaultKubeBinaryVersion + ".txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s is not that of this version; go test -update writes it anew: %v", file, err)
	}
}
