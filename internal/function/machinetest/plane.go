package machinetest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
	"github.com/drover-dev/drover/test/examples"
)

// A Runner runs the step that a request's input names.
type Runner func(now time.Time, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error)

// A Plane is a control plane with one Machine.
type Plane struct {
	Now time.Time
	Run Runner

	// Machine, and its composed resources by their roles.
	Machine  *unstructured.Unstructured
	Composed map[string]*unstructured.Unstructured
	// Forgotten are the roles of resources that the next run does not observe.
	Forgotten []string
	// Connection details by role: those of the Secret with the user data.
	Connection map[string]map[string][]byte

	// TargetError is the error of the target cluster, empty if it can be reached.
	TargetError string
	// Revoked reports whether the join token was deleted.
	Revoked bool
	// Node is the state that the Machine's controller keeps of the Node, nil until the pipeline
	// decided on parameters for one.
	Node *workernode.WorkerNode

	// Cluster is the configuration of the cluster that the Machine joins.
	Cluster *unstructured.Unstructured
	// Others are further objects, such as classes.
	Others []*unstructured.Unstructured
	// Schemas by apiVersion and kind, separated by a blank. Other kinds are not installed.
	Schemas map[string]*structpb.Struct
	// Capabilities that requests advertise.
	Capabilities []fnv1.Capability

	// Pipeline has the inputs of the steps.
	Pipeline []*structpb.Struct

	// join is the state of the join token and the user data.
	join plan.JoinState
	// world is the Node in the target cluster, and applied has the parameters that were applied to
	// it.
	world   workernode.Observation
	applied workernode.Parameters

	runner *pipeline.Runner
	calls
	t testing.TB
}

// Installation has the ID that identifies the VMs of this control plane.
const Installation = `
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: orphancollectors.machine.drover.dev, uid: 0a1b2c3d-0000-4000-8000-000000000001}
`

const targetCluster = `
apiVersion: cluster.drover.dev/v1alpha1
kind: ClusterProviderConfig
metadata: {name: target}
spec: {credentials: {source: InjectedIdentity}}
status:
  conditions: [{type: Reachable, status: "True", reason: Reachable, lastTransitionTime: "2030-01-01T12:00:00Z"}]
`

// New returns a Plane for the Composition in a file, with a Machine, its cluster and no other objects.
func New(t testing.TB, run Runner, composition string) *Plane {
	t.Helper()
	p := &Plane{
		Now:          time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC),
		Run:          run,
		Machine:      machine(t),
		Cluster:      Object(t, targetCluster),
		Composed:     map[string]*unstructured.Unstructured{},
		Connection:   map[string]map[string][]byte{},
		Schemas:      map[string]*structpb.Struct{},
		Capabilities: []fnv1.Capability{fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS},
		Pipeline:     inputsOf(t, composition),
		t:            t,
	}
	p.runner = pipeline.New(pipeline.Options{Local: p.local, Resources: p, Schemas: p})
	return p
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

// Object parses an object in YAML.
func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	// This decoder reads numbers into the types that the API machinery uses.
	if err := json.Unmarshal(b, &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// AddSchema adds the schema of the CRD in a file, as the API server publishes it.
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

func inputsOf(t testing.TB, file string) []*structpb.Struct {
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
	b, err := examples.Read(file)
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
