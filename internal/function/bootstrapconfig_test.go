package function

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/schematest"
)

const templateClass = `{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineClass", "metadata": {"namespace": "ns", "name": "small"},
	"spec": {"userData": {"bootstrapTemplateRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate", "name": "workers", "providerConfigRef": {"kind": "ClusterProviderConfig", "name": "c"}}}}}`

// bootstrapOf runs the step for a class with a template. The Bootstrap may be "".
func bootstrapOf(t *testing.T, status, bootstrap string, schema *fnv1.Schema) (*fnv1.RunFunctionResponse, plan.Bootstrap) {
	t.Helper()
	req := &fnv1.RunFunctionRequest{
		Meta:              &fnv1.RequestMeta{Capabilities: []fnv1.Capability{fnv1.Capability_CAPABILITY_CAPABILITIES, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS}},
		Input:             resource.MustStructJSON(`{"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Bootstrap"}`),
		Observed:          &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(aMachine + status + "}")}, Resources: map[string]*fnv1.Resource{}},
		Context:           &structpb.Struct{},
		RequiredResources: map[string]*fnv1.Resources{"class": {Items: []*fnv1.Resource{{Resource: resource.MustStructJSON(templateClass)}}}},
		RequiredSchemas:   map[string]*fnv1.Schema{requirementBootstrapSchema: schema},
	}
	if bootstrap != "" {
		req.Observed.Resources[machinev1alpha1.ResourceBootstrap] = &fnv1.Resource{Resource: resource.MustStructJSON(bootstrap)}
	}
	rsp, err := runBootstrap(time.Time{}, req)
	if err != nil {
		t.Fatal(err)
	}
	out := plan.Bootstrap{}
	if _, err := step.Context(&fnv1.RunFunctionRequest{Context: rsp.GetContext()}, step.ContextBootstrap, &out); err != nil {
		t.Fatal(err)
	}
	return rsp, out
}

var anySchema = &fnv1.Schema{OpenapiV3: resource.MustStructJSON(`{"type": "object"}`)}

// desiredBootstrap returns the Bootstrap that a response desires. It must fit the schema of the kind.
func desiredBootstrap(t *testing.T, rsp *fnv1.RunFunctionResponse) *clusterapi.Bootstrap {
	t.Helper()
	r := rsp.GetDesired().GetResources()[machinev1alpha1.ResourceBootstrap]
	if r == nil {
		return nil
	}
	b, err := protojson.Marshal(r.GetResource())
	if err != nil {
		t.Fatal(err)
	}
	schematest.Check(t, "../../package/provider-clusterapi/crds/clusterapi.drover.dev_bootstraps.yaml", string(b), "")
	out := &clusterapi.Bootstrap{}
	if err := yaml.UnmarshalStrict(b, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestABootstrapIsComposedBeforeThereIsUserData(t *testing.T) {
	rsp, d := bootstrapOf(t, `{}`, "", anySchema)
	b := desiredBootstrap(t, rsp)
	if b == nil || b.Spec.ForProvider.TemplateRef.Name != "workers" || *b.Spec.ForProvider.Version != "v1.35.4" || b.Spec.ProviderConfigReference.Name != "c" ||
		!strings.HasSuffix(b.Name, "-bootstrap") || b.Spec.WriteConnectionSecretToReference.Name == "" {
		t.Errorf("desired %+v", b)
	}
	if d.SecretName != "" || d.Waiting != "waiting for the user data of the bootstrap provider" || d.Join != nil {
		t.Errorf("%+v", d)
	}
}

func TestWithoutProviderClusterAPIItIsNamed(t *testing.T) {
	rsp, d := bootstrapOf(t, `{}`, "", &fnv1.Schema{})
	if b := desiredBootstrap(t, rsp); b != nil || d.Problem == nil || d.Problem.Reason != machinev1alpha1.ReasonProviderNotInstalled ||
		!strings.Contains(d.Problem.Message, `class "small": spec.userData.bootstrapTemplateRef: the API server has no kind Bootstrap of clusterapi.drover.dev/v1alpha1: install it by "kubectl drover install clusterapi"`) {
		t.Errorf("desired %+v, problem %+v", b, d.Problem)
	}
}

func TestABootstrapThatExistsIsKept(t *testing.T) {
	const spec = `"spec": {"forProvider": {"templateRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate", "name": "older"}}, "providerConfigRef": {"kind": "ClusterProviderConfig", "name": "c"}, "writeConnectionSecretToRef": {"name": "m-data"}}`
	object := func(status string) string {
		return `{"apiVersion": "clusterapi.drover.dev/v1alpha1", "kind": "Bootstrap", "metadata": {"namespace": "ns", "name": "m-bootstrap", "uid": "b"}, ` + spec + `, "status": ` + status + `}`
	}
	rsp, d := bootstrapOf(t, `{}`, object(`{"atProvider": {"ready": true}}`), anySchema)
	if b := desiredBootstrap(t, rsp); b == nil || b.Spec.ForProvider.TemplateRef.Name != "older" || b.Spec.ForProvider.NodeName != nil {
		t.Errorf("desired %+v", b)
	}
	if own := d.Join.OwnUserData; own == nil || own.SecretName != "m-data" || own.Bootstrap != "b" || own.Key != "value" {
		t.Errorf("request %+v", d.Join)
	}
	rsp, _ = bootstrapOf(t, `{"providerID": "x", "nodeRef": {"kind": "Node", "name": "node-1"}}`, object(`{"atProvider": {"ready": true}}`), anySchema)
	if b := desiredBootstrap(t, rsp); b == nil || b.Spec.ForProvider.NodeName == nil || *b.Spec.ForProvider.NodeName != "node-1" {
		t.Errorf("when the Node has joined: %+v", b)
	}
	_, d = bootstrapOf(t, `{}`, object(`{"conditions": [{"type": "Synced", "status": "False", "message": "timeout"}], "atProvider": {"ready": "yes"}}`), anySchema)
	if d.Waiting != "waiting for the user data of the bootstrap provider: timeout" || d.Join != nil {
		t.Errorf("%+v", d)
	}
	_, d = bootstrapOf(t, `{}`, object(`{"atProvider": {"problem": {"reason": "BootstrapConfigFailed", "message": "no CA"}}}`), anySchema)
	if d.Problem == nil || d.Problem.Reason != "BootstrapConfigFailed" {
		t.Errorf("%+v", d)
	}
	if b, err := json.Marshal(d); err != nil || strings.Contains(string(b), "#cloud-config") {
		t.Errorf("%s, %v", b, err)
	}
}
