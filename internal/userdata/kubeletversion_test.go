package userdata

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A test of cluster/kubernetes/tables compares the tables of testdata with Kubernetes, and writes them.
func TestAClassCanHaveTheFieldsOfAllTestedKubelets(t *testing.T) {
	tables, err := gateTables()
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[laterConfiguration]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known = append(known, name)
	}
	firsts, older := map[string]uint{}, []string{}
	for i, table := range tables {
		file := filepath.Join("testdata", "kubeletfields", fmt.Sprintf("v1.%d.txt", table.minor))
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.Lines(string(b)) {
			name = strings.TrimSpace(name)
			if !slices.Contains(known, name) {
				t.Errorf("%s has %s, which laterConfiguration lacks", file, name)
			}
			if i > 0 && !slices.Contains(older, name) {
				firsts[name] = table.minor
			}
			older = append(older, name)
		}
	}
	if diff := cmp.Diff(firsts, firstMinors); diff != "" {
		t.Errorf("firstMinors differs from the tables: -want +got:\n%s", diff)
	}
}
