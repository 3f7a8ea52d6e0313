package schematest

import (
	"path/filepath"
	"sync"
	"testing"
)

var (
	allLeaves []Leaf
	readAll   sync.Mutex
)

// AllLeaves returns the fields of all kinds that an API server gets from Drover. They are read once. The package of the
// test must be two folders below the root.
func AllLeaves(t *testing.T) []Leaf {
	t.Helper()
	readAll.Lock()
	defer readAll.Unlock()
	if len(allLeaves) > 0 {
		return allLeaves
	}
	for _, pattern := range []string{"package/*/crds/*.yaml", "apis/machine/xrds/*.yaml"} {
		files, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, error %v", pattern, err)
		}
		for _, file := range files {
			allLeaves = append(allLeaves, Leaves(t, file)...)
		}
	}
	return allLeaves
}
