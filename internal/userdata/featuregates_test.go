package userdata

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// A kubelet of a version between two tables would be held to the older one, so no minor version may be
// missing between the oldest and the newest.
func TestEachTestedVersionOfKubernetesHasATableOfFeatureGates(t *testing.T) {
	tables, err := gateTables()
	if err != nil {
		t.Fatal(err)
	}
	var minors []uint
	for i, table := range tables {
		if minors = append(minors, table.minor); table.minor != tables[0].minor+uint(i) {
			t.Errorf("a minor version is missing: %v", minors)
		}
	}
	files, err := filepath.Glob("../../cluster/kubernetes/versions/*.mod")
	if err != nil || len(files) == 0 {
		t.Fatalf("no pins of other versions: %v", err)
	}
	pinned := regexp.MustCompile(`\bk8s\.io/kubernetes v1\.(\d+)\.`)
	for _, file := range append(files, "../../cluster/kubernetes/go.mod") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := pinned.FindSubmatch(b)
		if m == nil {
			t.Fatalf("%s requires no Kubernetes", file)
		}
		if minor, err := strconv.ParseUint(string(m[1]), 10, 32); err != nil || !slices.Contains(minors, uint(minor)) {
			t.Errorf("%s: there is no table of feature gates of v1.%s: %v", file, m[1], err)
		}
	}
}

func TestTablesOfFeatureGatesAreWellFormed(t *testing.T) {
	tables, err := gateTables()
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	for _, table := range tables {
		if len(table.gates) < 100 {
			t.Errorf("v1.%d has only %d feature gates", table.minor, len(table.gates))
		}
		for gate, locked := range table.gates {
			if !name.MatchString(gate) || !slices.Contains([]string{"", "true", "false"}, locked) {
				t.Errorf("v1.%d: got %q locked to %q, want a name like AllAlpha, and true or false", table.minor, gate, locked)
			}
		}
	}
}
