package compatibility

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/group"
)

var (
	update = flag.Bool("update", false, "write testdata of a release that was made, from the folder -source")
	source = flag.String("source", root, "root of the source of the release, for -update")
)

const root = "../.."

// previous returns the testdata folder of the previous release, with the version in the Makefile.
func previous(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^PREVIOUS_VERSION := (\S+)$`).FindSubmatch(b)
	if m == nil {
		t.Fatal("the Makefile has no PREVIOUS_VERSION")
	}
	return filepath.Join("testdata", string(m[1]))
}

// golden reads a file of the previous release. If the test updates golden files, it writes the
// file first.
func golden[T any](t *testing.T, name string, now func(root string) (T, error)) (before T) {
	t.Helper()
	file := filepath.Join(previous(t), name)
	if *update {
		is, err := now(*source)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.MarshalIndent(is, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, append(b, '\n'), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &before); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return before
}

// TestObjectsOfThePreviousReleaseAreKept compares the schemas of all kinds with those of the
// previous release. Each kind has one version, which is the storage version, and no conversion.
func TestObjectsOfThePreviousReleaseAreKept(t *testing.T) {
	before := golden(t, "schemas.json", schemasIn)
	now, err := schemasIn(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range now.breaks(before) {
		t.Errorf("%s\nA field is removed in two releases: the first one ignores it, the second one removes it. Another type needs another field.", b)
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if v := now[name]; !v.Storage || !v.Served {
			t.Errorf("%s: served %t, stored %t: a second version needs a conversion, and a test of it", name, v.Served, v.Storage)
		}
	}
	if len(before) < 30 {
		t.Errorf("%d kinds are compared: this shows nothing", len(before))
	}
}

func TestBreaks(t *testing.T) {
	base := func() kinds {
		return kinds{"g K v1": {Served: true, Storage: true, Fields: map[string]field{
			"": {Type: "scope Namespaced"}, "spec": {Type: "object"}, "spec.a": {Type: "string", Enum: []string{`"x"`, `"y"`}}, "spec.l": {Type: "array", List: "map name"}, "spec.d": {Type: "integer", Default: "1"},
			"status": {Type: "object"}, "status.observedGeneration": {Type: "integer"}, "status.n": {Type: "integer"}, "status.t": {Type: "string date-time"},
		}}}
	}
	change := func(path string, f func(*field)) func(kinds) {
		return func(k kinds) {
			is := k["g K v1"].Fields[path]
			f(&is)
			k["g K v1"].Fields[path] = is
		}
	}
	for name, tc := range map[string]struct {
		change func(kinds)
		want   string
	}{
		"Nothing":           {func(kinds) {}, ""},
		"ANewField":         {change("spec.n", func(f *field) { f.Type = "string" }), ""},
		"ANewRequiredField": {change("spec.n", func(f *field) { f.Type, f.Required = "string", true }), "spec.n: is new and required"},
		"ARequiredInANew": {func(k kinds) {
			change("spec.n", func(f *field) { f.Type = "object" })(k)
			change("spec.n.r", func(f *field) { f.Required = true })(k)
		}, ""},
		"ARemovedField":        {func(k kinds) { delete(k["g K v1"].Fields, "spec.a") }, "spec.a: is removed"},
		"AnotherType":          {change("spec.d", func(f *field) { f.Type = "string" }), "spec.d: was integer, and is string"},
		"WithoutItsFormat":     {change("status.t", func(f *field) { f.Type = "string" }), ""},
		"AnotherFormat":        {change("status.t", func(f *field) { f.Type = "string byte" }), "status.t: was string date-time, and is string byte"},
		"RequiredNow":          {change("spec.a", func(f *field) { f.Required = true }), "spec.a: is required now"},
		"AnotherDefault":       {change("spec.d", func(f *field) { f.Default = "2" }), `spec.d: had the default "1", and has "2"`},
		"ANewDefault":          {change("spec.a", func(f *field) { f.Default = "x" }), `spec.a: had the default "", and has "x"`},
		"ANewDefaultOfAStatus": {change("status.n", func(f *field) { f.Default = "-1" }), `status.n: had the default "", and has "-1"`},
		"AnObservedByDefault":  {change("status.observedGeneration", func(f *field) { f.Default = "1" }), `status.observedGeneration: had the default "", and has "1"`},
		"NotObservedByDefault": {change("status.observedGeneration", func(f *field) { f.Default = "-1" }), ""},
		"AStatusNotObserved":   {change("status", func(f *field) { f.Default = `{"observedGeneration":-1}` }), ""},
		"AStatusWithMore":      {change("status", func(f *field) { f.Default = `{"n":1,"observedGeneration":-1}` }), "status: had the default"},
		"AValueLess":           {change("spec.a", func(f *field) { f.Enum = []string{`"x"`} }), `spec.a: "y" is not allowed any more`},
		"AValueMore":           {change("spec.a", func(f *field) { f.Enum = append(f.Enum, `"z"`) }), ""},
		"OnlySomeValues":       {change("spec.d", func(f *field) { f.Enum = []string{"1"} }), "spec.d: only [1] are allowed now"},
		"MergedDifferently":    {change("spec.l", func(f *field) { f.List = "atomic" }), `spec.l: was merged by "map name", and is by "atomic"`},
		"AnotherScope":         {change("", func(f *field) { f.Type = "scope Cluster" }), "was scope Namespaced, and is scope Cluster"},
		"TheVersionIsGone":     {func(k kinds) { delete(k, "g K v1") }, "the version is gone"},
		"ItIsNotStored":        {func(k kinds) { v := k["g K v1"]; v.Storage = false; k["g K v1"] = v }, "not the storage version any more"},
		"ItIsNotServed":        {func(k kinds) { v := k["g K v1"]; v.Served = false; k["g K v1"] = v }, "not served any more"},
		"AnotherKindIsAdded":   {func(k kinds) { k["g L v1"] = version{} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			now := base()
			tc.change(now)
			got := strings.Join(now.breaks(base()), "\n")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// An input of a Drover step in a Composition.
type input struct {
	Composition string         `json:"composition"`
	Step        string         `json:"step"`
	Input       map[string]any `json:"input"`
}

func inputsIn(root string) ([]input, error) {
	files, err := filepath.Glob(filepath.Join(root, "apis/machine/compositions/*.yaml"))
	if err != nil {
		return nil, err
	}
	var out []input
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var c struct {
			Metadata struct{ Name string }
			Spec     struct {
				Pipeline []struct {
					Step        string
					FunctionRef struct{ Name string }
					Input       map[string]any
				}
			}
		}
		if err := yaml.Unmarshal(b, &c); err != nil {
			return nil, err
		}
		for _, s := range c.Spec.Pipeline {
			if s.Input != nil && strings.HasPrefix(s.Input["apiVersion"].(string), "fn.drover.dev/") {
				out = append(out, input{c.Metadata.Name, s.Step, s.Input})
			}
		}
	}
	return out, nil
}

// TestCompositionsOfThePreviousReleaseRun decodes the inputs of its steps as strictly as the
// steps do. Machines follow a CompositionRevision of the previous release until their own
// update policy moves them, so the steps get its inputs for a long time.
func TestCompositionsOfThePreviousReleaseRun(t *testing.T) {
	types := map[string]func() any{
		"Safety": func() any { return &fn.Safety{} }, "Rollout": func() any { return &fn.Rollout{} }, "Replicas": func() any { return &fn.Replicas{} },
		"Bootstrap": func() any { return &fn.Bootstrap{} }, "Infrastructure": func() any { return &fn.Infrastructure{} },
		"Lifecycle": func() any { return &fn.Lifecycle{} }, "Orphans": func() any { return &fn.Orphans{} },
	}
	inputs := golden(t, "inputs.json", inputsIn)
	seen := map[string]bool{}
	for _, i := range inputs {
		kind, _ := i.Input["kind"].(string)
		if types[kind] == nil {
			t.Errorf("Composition %s, step %s: this release has no input %s", i.Composition, i.Step, kind)
			continue
		}
		seen[kind] = true
		b, err := json.Marshal(i.Input)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(b, types[kind]()); err != nil {
			t.Errorf("Composition %s, step %s: %v", i.Composition, i.Step, err)
		}
	}
	if len(seen) != len(types) {
		t.Errorf("inputs of %v only", seen)
	}
}

// A digest of Machines. provider-drover writes it, and function-drover compares it with its own
// digest of the same Machines.
type digest struct {
	Machines []*machinev1alpha1.Machine `json:"machines"`
	Digest   string                     `json:"digest"`
}

// TestDigestsOfThePreviousReleaseAreEqual checks that a set does not wait for its group while
// provider and function have different versions. If the digest must change, sets are requeued
// every 3 seconds until both are upgraded. Then describe this in the changelog and regenerate
// testdata.
func TestDigestsOfThePreviousReleaseAreEqual(t *testing.T) {
	before := golden(t, "digest.json", func(string) (digest, error) {
		ms, err := machines()
		if err != nil {
			return digest{}, err
		}
		d, err := group.Digest("set", ms)
		return digest{ms, d}, err
	})
	got, err := group.Digest("set", before.Machines)
	if err != nil {
		t.Fatal(err)
	}
	if got != before.Digest {
		t.Errorf("the digest of the Machines of the previous release is %s, and was %s", got, before.Digest)
	}
}

// machines returns Machines with every field that has a simple value in the schema.
func machines() ([]*machinev1alpha1.Machine, error) {
	const text = `
- metadata: {namespace: ns, name: a, uid: uid-a, creationTimestamp: "2030-01-01T12:00:00Z", labels: {app: web}, annotations: {machine.drover.dev/preserve: when-failed},
    ownerReferences: [{apiVersion: machine.drover.dev/v1alpha1, kind: MachineSet, name: s, uid: set, controller: true}]}
  spec: {classRef: {name: small}, version: v1.35.4, clusterRef: {name: default}, failureDomain: zone-a, creationTimeout: 20m0s}
  status:
    phase: Running
    providerID: local:///zone-a/vm-1
    nodeRef: {kind: Node, name: a, uid: node-a}
    readySince: "2030-01-01T12:05:00Z"
    addresses: [{type: InternalIP, address: 10.0.0.1}]
    conditions: [{type: Valid, status: "True", reason: Valid, message: "", lastTransitionTime: "2030-01-01T12:00:00Z"}]
    lastOperation: {type: Join, state: Successful, description: Node a joined}
- metadata: {namespace: ns, name: b, uid: uid-b, creationTimestamp: "2030-01-01T12:00:00Z", labels: {app: web}}
  spec: {classRef: {name: small}, version: v1.35.4, clusterRef: {name: default}}
  status: {phase: Failed, failureReason: JoinTimeout, failureMessage: no Node joined within 20m0s, replaceRequested: true, refusedUntil: "2030-01-01T12:01:00Z",
    conditions: [{type: Valid, status: "False", reason: VersionSkew, message: m, lastTransitionTime: "2030-01-01T12:00:00Z"}]}
- metadata: {namespace: ns, name: c, uid: uid-c, ownerReferences: [{apiVersion: machine.drover.dev/v1alpha1, kind: MachineSet, name: t, uid: other, controller: true}]}
  spec: {classRef: {name: small}, version: v1.35.4, clusterRef: {name: default}}
`
	var out []*machinev1alpha1.Machine
	return out, yaml.UnmarshalStrict([]byte(text), &out)
}
