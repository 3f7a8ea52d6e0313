package userdata

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// featureGateFiles have the feature gates of kubelets, one file per minor version that Drover is tested
// with. Each line is the name of a gate, followed by "true" or "false" if the gate is locked to that value.
// A test of cluster/kubernetes/tables compares the files with Kubernetes, and writes them.
//
//go:embed featuregates/*.txt
var featureGateFiles embed.FS

// A gateTable is the content of one file.
type gateTable struct {
	minor uint
	// gates are the values that gates are locked to, by name. "" means that the gate is not locked.
	gates map[string]string
}

// gateTables returns the tables of all files, the oldest version first.
var gateTables = sync.OnceValues(func() ([]gateTable, error) {
	files, err := featureGateFiles.ReadDir("featuregates")
	if err != nil {
		return nil, err
	}
	var out []gateTable
	for _, f := range files {
		t := gateTable{gates: map[string]string{}}
		if _, err := fmt.Sscanf(f.Name(), "v1.%d.txt", &t.minor); err != nil {
			return nil, fmt.Errorf("%s: must be a name like v1.35.txt: %w", f.Name(), err)
		}
		b, err := featureGateFiles.ReadFile(path.Join("featuregates", f.Name()))
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			name, locked, _ := strings.Cut(strings.TrimSpace(line), " ")
			t.gates[name] = locked
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b gateTable) int { return int(a.minor) - int(b.minor) })
	return out, nil
})

// checkFeatureGates returns an error for each gate with which a kubelet of a minor version does not start:
// the gate was removed, or is locked to another value. A gate that is in no table may be a vendor's. A
// kubelet that is newer than all tables is held to the newest table: removed gates do not come back, and
// locked gates are not unlocked.
func checkFeatureGates(gates map[string]bool, minor uint, path *field.Path) field.ErrorList {
	tables, err := gateTables()
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	upTo := slices.IndexFunc(tables, func(t gateTable) bool { return t.minor > minor })
	if upTo < 0 {
		upTo = len(tables)
	}
	if upTo == 0 {
		return nil
	}
	last, older := tables[upTo-1], tables[:upTo-1]
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		locked, known := last.gates[name]
		switch {
		case !known && slices.ContainsFunc(older, func(t gateTable) bool { _, ok := t.gates[name]; return ok }):
			errs = append(errs, field.Forbidden(path.Key(name), fmt.Sprintf("kubelets of v1.%d no longer have this feature gate, and do not start with it", last.minor)))
		case locked != "" && locked != fmt.Sprint(gates[name]):
			errs = append(errs, field.Invalid(path.Key(name), gates[name], fmt.Sprintf("kubelets of v1.%d lock this feature gate to %s, and do not start with another value", last.minor, locked)))
		}
	}
	return errs
}
