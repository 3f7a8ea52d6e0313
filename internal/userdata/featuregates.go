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

// featureGateFiles list the feature gates of kubelets, a file for each minor version that Drover is tested
// with: a name on each line, and "true" or "false" after it if that is the only value. A test of
// cluster/kubernetes writes them.
//
//go:embed featuregates/*.txt
var featureGateFiles embed.FS

// A gateTable has the feature gates of one minor version, with their only value if they have one.
type gateTable struct {
	minor uint
	gates map[string]string
}

// gateTables are those of all files, the oldest first.
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
			name, only, _ := strings.Cut(strings.TrimSpace(line), " ")
			t.gates[name] = only
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b gateTable) int { return int(a.minor) - int(b.minor) })
	return out, nil
})

// checkFeatureGates finds those with which a kubelet of a minor version does not start: they were removed,
// or are locked to another value. A gate that no version has may be one of a vendor. A kubelet that is
// newer than all tables has what the newest has, at most.
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
		only, known := last.gates[name]
		switch {
		case !known && slices.ContainsFunc(older, func(t gateTable) bool { _, ok := t.gates[name]; return ok }):
			errs = append(errs, field.Forbidden(path.Key(name), fmt.Sprintf("kubelets of v1.%d do not have this feature gate any more, and do not start with it", last.minor)))
		case only != "" && only != fmt.Sprint(gates[name]):
			errs = append(errs, field.Invalid(path.Key(name), gates[name], fmt.Sprintf("kubelets of v1.%d start only with the value %s", last.minor, only)))
		}
	}
	return errs
}
