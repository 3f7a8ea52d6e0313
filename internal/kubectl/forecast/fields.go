package forecast

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// effects of fields, by their prefix. The first that matches counts.
var effects = []struct {
	prefix string
	effect Effect
}{
	{"spec.replicas", Scales},
	{"spec.template.spec.classRef", Rolls},
	{"spec.template.spec.version", Rolls},
	{"spec.template.spec.clusterRef", Rolls},
	{"spec.template.spec.failureDomain", Rolls},
	{"spec.template.metadata", Rolls},
	{"spec.rollbackTo", Rolls},
	{"spec.rollout.after", Rolls},
	{"spec.template.spec.infrastructureRef", NoEffect},
	{"spec.template.spec", InPlace},
}

func effectOf(path string) Effect {
	for _, e := range effects {
		if path == e.prefix || strings.HasPrefix(path, e.prefix+".") {
			return e.effect
		}
	}
	return NoEffect
}

// fieldsOf returns the fields in which two specs differ, by path.
func fieldsOf(before, after *machinev1alpha1.MachineDeployment) []Field {
	from, to := map[string]string{}, map[string]string{}
	flatten("spec", object(before.Spec), from)
	flatten("spec", object(after.Spec), to)
	all := maps.Clone(from)
	maps.Copy(all, to)
	var out []Field
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if from[path] != to[path] {
			out = append(out, Field{Path: path, From: from[path], To: to[path], Effect: effectOf(path)})
		}
	}
	return out
}

// object returns a spec as in JSON.
func object(spec machinev1alpha1.MachineDeploymentSpec) map[string]any {
	b, err := json.Marshal(spec)
	out := map[string]any{}
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		// API types always encode, and their JSON always decodes.
		panic(err)
	}
	return out
}

func flatten(path string, v any, into map[string]string) {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 {
		if b, err := json.Marshal(v); err == nil {
			into[path] = string(b)
		}
		return
	}
	for k, below := range m {
		flatten(path+"."+k, below, into)
	}
}
