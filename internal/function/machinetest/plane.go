package machinetest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// maxIterations of a step whose requirements do not come to rest, as in Crossplane.
const maxIterations = 5

// A Runner runs the step that a request's input names.
type Runner func(now time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error)

// A Plane is a control plane with one Machine.
type Plane struct {
	Now time.Time
	Run Runner

	// Machine is the XR, and Composed what it composes, by composition resource name.
	Machine  *unstructured.Unstructured
	Composed map[string]*unstructured.Unstructured
	// Forgotten are names of composed resources that the Machine does not refer to.
	Forgotten []string
	// Connection details by composition resource name.
	Connection map[string]map[string][]byte

	// Others are what is there besides, such as classes.
	Others []*unstructured.Unstructured
	// Schemas by apiVersion and kind with a blank between. A kind that is not in it
	// is not installed.
	Schemas map[string]*structpb.Struct
	// Capabilities that Crossplane says that it has.
	Capabilities []fnv1.Capability

	// Pipeline has the inputs of the steps.
	Pipeline []*structpb.Struct

	// required by each step last time, as Crossplane keeps it while it runs.
	required map[int]map[string]*fnv1.ResourceSelector

	t testing.TB
}

// Installation is what VMs of this control plane, and of no other, are told by.
const Installation = `
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: orphancollectors.machine.drover.dev, uid: 0a1b2c3d-0000-4000-8000-000000000001}
`

// New returns a Plane of a Composition's file, with a Machine and nothing else.
func New(t testing.TB, run Runner, composition string) *Plane {
	t.Helper()
	return &Plane{
		Now:          time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC),
		Run:          run,
		Machine:      machine(t),
		Composed:     map[string]*unstructured.Unstructured{},
		Connection:   map[string]map[string][]byte{},
		Schemas:      map[string]*structpb.Struct{},
		Capabilities: []fnv1.Capability{fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS},
		Pipeline:     pipeline(t, composition),
		required:     map[int]map[string]*fnv1.ResourceSelector{},
		t:            t,
	}
}

func machine(t testing.TB) *unstructured.Unstructured {
	return Object(t, `
apiVersion: machine.drover.dev/v1alpha1
kind: Machine
metadata: {namespace: ns, name: workers-x7k2p, uid: 6f8e9d10-aaaa-4bbb-8ccc-0123456789ab, generation: 1, creationTimestamp: "2030-01-01T12:00:00Z"}
spec:
  classRef: {name: small}
  version: v1.35.4
  clusterRef: {kind: ClusterProviderConfig, name: target}
  metadata:
    labels: {pool: a, node-role.kubernetes.io/worker: ""}
    annotations: {example.org/note: hello}
  taints: [{key: dedicated, value: batch, effect: NoSchedule}]
  drain: {timeout: 10m}
  creationTimeout: 20m
`)
}

// Object reads YAML.
func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	// The form in which all numbers are what they are in the API machinery.
	if err := json.Unmarshal(b, &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// AddSchema of a CRD's file, as the API server publishes it and Crossplane passes
// it on.
func (p *Plane) AddSchema(file string) {
	p.t.Helper()
	crd := &extv1.CustomResourceDefinition{}
	b, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, crd); err != nil {
		p.t.Fatalf("%s: %v", file, err)
	}
	for _, v := range crd.Spec.Versions {
		doc, err := builder.BuildOpenAPIV3(crd, v.Name, builder.Options{})
		if err != nil {
			p.t.Fatalf("%s: %v", file, err)
		}
		for name, s := range doc.Components.Schemas {
			if gvks, ok := s.Extensions["x-kubernetes-group-version-kind"].([]any); !ok || len(gvks) != 1 || !strings.HasSuffix(name, "."+crd.Spec.Names.Kind) {
				continue
			}
			const prefix = "#/components/schemas/"
			flat, err := resolver.PopulateRefs(func(ref string) (*spec.Schema, bool) {
				s, ok := doc.Components.Schemas[strings.TrimPrefix(ref, prefix)]
				return s, ok
			}, prefix+name)
			if err != nil {
				p.t.Fatalf("%s: %v", file, err)
			}
			b, err := json.Marshal(flat)
			if err != nil {
				p.t.Fatal(err)
			}
			published := &structpb.Struct{}
			if err := published.UnmarshalJSON(b); err != nil {
				p.t.Fatal(err)
			}
			p.Schemas[fmt.Sprintf("%s/%s %s", crd.Spec.Group, v.Name, crd.Spec.Names.Kind)] = published
		}
	}
}

func pipeline(t testing.TB, file string) []*structpb.Struct {
	steps, _, err := unstructured.NestedSlice(readYAML(t, file), "spec", "pipeline")
	if err != nil {
		t.Fatal(err)
	}
	var out []*structpb.Struct
	for _, s := range steps {
		input, _, _ := unstructured.NestedMap(s.(map[string]any), "input")
		out = append(out, asStruct(t, input))
	}
	return out
}

func readYAML(t testing.TB, file string) map[string]any {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]any{}
	if err := yaml.Unmarshal(b, &m); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return m
}

func asStruct(t testing.TB, m map[string]any) *structpb.Struct {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return s
}

// A Result is what came of a run of the pipeline.
type Result struct {
	Desired *fnv1.State
	// Conditions of the Machine by type.
	Conditions map[string]*fnv1.Condition
	Events     []*fnv1.Result
	TTL        time.Duration
	// Requests of all calls of the function.
	Requests []*fnv1.RunFunctionRequest
	// Requirements of the last call of each step.
	Requirements []string
}

// Pipe runs the pipeline once, and changes nothing. Each call is made twice: the
// same view must give the same answer.
func (p *Plane) Pipe() (Result, error) {
	p.t.Helper()
	out := Result{Desired: &fnv1.State{}, Conditions: map[string]*fnv1.Condition{}}
	context := &structpb.Struct{}
	for i, input := range p.Pipeline {
		req := &fnv1.RunFunctionRequest{
			Meta:              &fnv1.RequestMeta{Capabilities: p.Capabilities},
			Observed:          p.observed(),
			Desired:           out.Desired,
			Context:           context,
			Input:             input,
			RequiredResources: p.known(i),
			RequiredSchemas:   map[string]*fnv1.Schema{},
		}
		rsp, err := p.fetching(req, &out)
		if err != nil {
			return out, err
		}
		p.required[i] = rsp.GetRequirements().GetResources()
		for _, r := range rsp.GetResults() {
			if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
				return out, fmt.Errorf("%s", r.GetMessage())
			}
		}
		out.Desired, context = rsp.GetDesired(), rsp.GetContext()
		out.Events = append(out.Events, rsp.GetResults()...)
		for _, c := range rsp.GetConditions() {
			out.Conditions[c.GetType()] = c
		}
		for name := range rsp.GetRequirements().GetResources() {
			out.Requirements = append(out.Requirements, name)
		}
		for name := range rsp.GetRequirements().GetSchemas() {
			out.Requirements = append(out.Requirements, name)
		}
		if ttl := rsp.GetMeta().GetTtl().AsDuration(); out.TTL == 0 || ttl < out.TTL {
			out.TTL = ttl
		}
	}
	return out, nil
}

// known is what Crossplane hands a step at once: what it required last time.
func (p *Plane) known(step int) map[string]*fnv1.Resources {
	out := map[string]*fnv1.Resources{}
	for name, s := range p.required[step] {
		out[name] = p.find(s)
	}
	return out
}

// fetching runs a step until its requirements come to rest.
func (p *Plane) fetching(req *fnv1.RunFunctionRequest, out *Result) (*fnv1.RunFunctionResponse, error) {
	run := func(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
		rsp, err := p.Run(p.Now, proto.CloneOf(req))
		if err != nil {
			return nil, err
		}
		out.Requests = append(out.Requests, proto.CloneOf(req))
		if same, err := p.Run(p.Now, proto.CloneOf(req)); err != nil || !proto.Equal(rsp, same) {
			p.t.Errorf("the same request has two answers:\n%v\n%v\n%v", rsp, same, err)
		}
		return rsp, nil
	}
	return Fetching(req, run, p.find, func(s *fnv1.SchemaSelector) *fnv1.Schema {
		return &fnv1.Schema{OpenapiV3: p.Schemas[s.GetApiVersion()+" "+s.GetKind()]}
	})
}

func (p *Plane) find(s *fnv1.ResourceSelector) *fnv1.Resources {
	out := &fnv1.Resources{}
	all := slices.Clone(p.Others)
	for _, c := range p.Composed {
		all = append(all, c)
	}
	for _, o := range all {
		if o.GetAPIVersion() == s.GetApiVersion() && o.GetKind() == s.GetKind() && o.GetNamespace() == s.GetNamespace() && o.GetName() == s.GetMatchName() {
			out.Items = append(out.Items, &fnv1.Resource{Resource: asStruct(p.t, o.Object)})
		}
	}
	return out
}

func (p *Plane) observed() *fnv1.State {
	s := &fnv1.State{
		Composite: &fnv1.Resource{Resource: asStruct(p.t, p.Machine.Object)},
		Resources: map[string]*fnv1.Resource{},
	}
	for name, o := range p.Composed {
		if !slices.Contains(p.Forgotten, name) {
			s.Resources[name] = &fnv1.Resource{Resource: asStruct(p.t, o.Object), ConnectionDetails: p.Connection[name]}
		}
	}
	return s
}

// Reconcile runs the pipeline and applies what comes of it, as Crossplane does:
// what is no longer desired is deleted, and what others wrote stays.
func (p *Plane) Reconcile() Result {
	p.t.Helper()
	r, err := p.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	for name := range p.Composed {
		if _, ok := r.Desired.GetResources()[name]; !ok && !slices.Contains(p.Forgotten, name) {
			delete(p.Composed, name)
			delete(p.Connection, name)
		}
	}
	for name, d := range r.Desired.GetResources() {
		p.apply(name, &unstructured.Unstructured{Object: d.GetResource().AsMap()})
	}
	p.Forgotten = nil
	status, _ := r.Desired.GetComposite().GetResource().AsMap()["status"].(map[string]any)
	p.Machine.Object["status"] = status
	var conditions []any
	for _, c := range r.Conditions {
		conditions = append(conditions, map[string]any{
			"type": c.GetType(), "reason": c.GetReason(), "message": c.GetMessage(),
			"status":             map[fnv1.Status]string{fnv1.Status_STATUS_CONDITION_TRUE: "True", fnv1.Status_STATUS_CONDITION_FALSE: "False"}[c.GetStatus()],
			"lastTransitionTime": p.Now.Format(time.RFC3339),
		})
	}
	if status != nil {
		status["conditions"] = conditions
	}
	return r
}

func (p *Plane) apply(name string, o *unstructured.Unstructured) {
	p.t.Helper()
	o.SetNamespace(p.Machine.GetNamespace())
	there, ok := p.Composed[name]
	if !ok {
		o.SetUID(types.UID("uid-of-" + name))
		o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(p.Machine, machinev1alpha1.MachineGroupVersionKind)})
		p.Composed[name] = o
		return
	}
	for _, content := range []string{"spec", "data", "type"} {
		if v, ok := o.Object[content]; ok {
			there.Object[content] = runtime.DeepCopyJSONValue(v)
		}
	}
	there.SetFinalizers(o.GetFinalizers())
}
