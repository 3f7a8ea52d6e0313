package function_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/drover-dev/drover/internal/function"
	"github.com/drover-dev/drover/internal/function/machinetest"
)

const (
	root         = "../../"
	goldens      = root + "test/render/testdata"
	compositions = root + "apis/machine/compositions"
	vmCRD        = root + "package/provider-local/crds/local.drover.dev_virtualmachines.yaml"
)

// now is the time of all seeds, within a year.
var now = time.Date(2030, 1, 1, 12, 30, 0, 0, time.UTC)

func run(at time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	f := function.New(logging.NewNopLogger(), func() time.Time { return at })
	return f.RunFunction(context.Background(), req)
}

func kindOf(req *fnv1.RunFunctionRequest) string {
	return req.GetInput().GetFields()["kind"].GetStringValue()
}

// machineSeeds returns all calls of a step in the life of a Machine: from its creation to a deleted
// Node and a lost VM, with a restart, and with a VM that is not observed.
func machineSeeds(t testing.TB, kind string) []*fnv1.RunFunctionRequest {
	t.Helper()
	p := machinetest.New(t, run, filepath.Join(compositions, "machine-local.yaml"))
	p.AddSchema(vmCRD)
	for _, o := range read(t, filepath.Join(goldens, "machine-fresh", "required.yaml")) {
		o.SetNamespace(p.Machine.GetNamespace())
		p.Others = append(p.Others, o)
	}
	p.Others = append(p.Others, machinetest.Object(t, machinetest.Installation))
	var seeds []*fnv1.RunFunctionRequest
	pipe := func() {
		t.Helper()
		r, err := p.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		for _, req := range r.Requests {
			if kindOf(req) == kind {
				seeds = append(seeds, req)
			}
		}
	}
	for _, happens := range []func(){
		func() { p.TargetError = "connect failed: timeout" }, p.TokenIsThere, func() {}, p.VMIsCreated, p.VMRuns,
		func() { p.NodeIs("True", p.Now) },
		func() { p.NodeIs("False", p.Now) },
		func() { p.NodeIs("", p.Now) },
		func() { p.Node = nil },
		func() { p.Forgotten = []string{"vm"} },
		func() { delete(p.Composed, "vm") },
	} {
		happens()
		pipe()
		p.Reconcile()
	}
	return seeds
}

// parentSeeds returns the calls of a step in the cases of the golden renders.
func parentSeeds(t testing.TB, kind, composition, cases string) []*fnv1.RunFunctionRequest {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(goldens, cases))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases %s: %v", cases, err)
	}
	var seeds []*fnv1.RunFunctionRequest
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "observed*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		xr := read(t, filepath.Join(dir, "xr.yaml"))[0]
		observed := &fnv1.State{Composite: &fnv1.Resource{Resource: asStruct(t, xr)}, Resources: map[string]*fnv1.Resource{}}
		world := read(t, filepath.Join(dir, "required.yaml"))
		world = append(world, read(t, filepath.Join(compositions, "machine-local.yaml"))...)
		world = append(world, machinetest.Object(t, machinetest.Installation))
		for _, file := range files {
			for _, o := range read(t, file) {
				observed.Resources[o.GetAnnotations()["crossplane.io/composition-resource-name"]] = &fnv1.Resource{Resource: asStruct(t, o)}
				world = append(world, o)
			}
		}
		req := &fnv1.RunFunctionRequest{Meta: &fnv1.RequestMeta{}, Observed: observed, Desired: &fnv1.State{}}
		for _, input := range inputs(t, filepath.Join(compositions, composition)) {
			req.Input, req.RequiredResources = input, map[string]*fnv1.Resources{}
			calls, rsp := fetch(t, req, world)
			if kindOf(req) == kind {
				seeds = append(seeds, calls...)
			}
			req.Desired, req.Context = rsp.GetDesired(), rsp.GetContext()
		}
	}
	return seeds
}

// fetch calls a step as Crossplane does, until it has all required resources.
func fetch(t testing.TB, req *fnv1.RunFunctionRequest, world []*unstructured.Unstructured) (calls []*fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) {
	t.Helper()
	for range 5 {
		calls = append(calls, proto.CloneOf(req))
		var err error
		if rsp, err = run(now, req); err != nil {
			t.Fatal(err)
		}
		if answered(req, rsp) {
			return calls, rsp
		}
		for name, s := range rsp.GetRequirements().GetResources() {
			found := &fnv1.Resources{}
			for _, o := range world {
				if o.GetAPIVersion() == s.GetApiVersion() && o.GetKind() == s.GetKind() && (s.GetMatchName() == o.GetName() ||
					s.GetMatchName() == "" && labels.SelectorFromSet(s.GetMatchLabels().GetLabels()).Matches(labels.Set(o.GetLabels()))) {
					found.Items = append(found.Items, &fnv1.Resource{Resource: asStruct(t, o)})
				}
			}
			req.RequiredResources[name] = found
		}
	}
	t.Fatalf("step %s asks for ever more: %v", kindOf(req), rsp.GetRequirements())
	return nil, nil
}

// answered reports whether the request had all resources that the response requires: Crossplane uses
// no other response.
func answered(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) bool {
	for name := range rsp.GetRequirements().GetResources() {
		if _, ok := req.GetRequiredResources()[name]; !ok {
			return false
		}
	}
	for name := range rsp.GetRequirements().GetSchemas() {
		if _, ok := req.GetRequiredSchemas()[name]; !ok {
			return false
		}
	}
	return true
}

func inputs(t testing.TB, composition string) []*structpb.Struct {
	t.Helper()
	steps, _, err := unstructured.NestedSlice(read(t, composition)[0].Object, "spec", "pipeline")
	if err != nil {
		t.Fatal(err)
	}
	var out []*structpb.Struct
	for _, s := range steps {
		input, _, _ := unstructured.NestedMap(s.(map[string]any), "input")
		out = append(out, asStruct(t, &unstructured.Unstructured{Object: input}))
	}
	return out
}

// read returns the documents of a YAML file.
func read(t testing.TB, file string) []*unstructured.Unstructured {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for d := yamlstream.NewYAMLOrJSONDecoder(bytes.NewReader(b), 4096); ; {
		u := &unstructured.Unstructured{}
		if err := d.Decode(&u.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, u)
	}
}

func asStruct(t testing.TB, o *unstructured.Unstructured) *structpb.Struct {
	t.Helper()
	b, err := json.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return s
}
