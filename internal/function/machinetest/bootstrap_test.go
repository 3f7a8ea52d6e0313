package machinetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAVMWaitsForItsBootstrapProvider has a class of the local cloud whose user data a bootstrap provider of Cluster API makes.
func TestAVMWaitsForItsBootstrapProvider(t *testing.T) {
	p := newPlane(t)
	p.AddSchema(root + "package/provider-clusterapi/crds/clusterapi.drover.dev_bootstraps.yaml")
	p.Others = append(p.Others[:0], Object(t, `
apiVersion: machine.drover.dev/v1alpha1
kind: MachineClass
metadata: {namespace: ns, name: small}
spec:
  provider: local
  forProvider: {image: ubuntu-24.04, size: small}
  providerConfigRef: {kind: ClusterProviderConfig, name: default}
  userData: {bootstrapTemplateRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfigTemplate, name: workers, providerConfigRef: {kind: ClusterProviderConfig, name: c}}}
`), Object(t, Installation))
	step := func(name string, world func(), wantDesired []string, phaseIs, conditionType, text string) {
		t.Helper()
		world()
		p.Now = p.Now.Add(3 * time.Second)
		r := p.Reconcile()
		if got := desired(r); !slices.Equal(got, wantDesired) || phase(p) != phaseIs {
			t.Errorf("%s: desired %v, phase %s", name, got, phase(p))
		}
		if c := condition(p, conditionType); !strings.Contains(c["message"].(string), text) {
			t.Errorf("%s: %v", name, c)
		}
	}
	at := func(status map[string]any) func() {
		return func() { Set(p.Composed["bootstrap"], status, "status", "atProvider") }
	}
	step("TheBootstrapIsCreated", func() {}, []string{"bootstrap"}, "Pending", "InfrastructureReady", "waiting for the user data of the bootstrap provider")
	step("TheProviderWaits", at(map[string]any{"waiting": "waiting for KubeadmConfig ns/m: Ready: soon"}), []string{"bootstrap"}, "Pending", "InfrastructureReady", "waiting for KubeadmConfig ns/m: Ready: soon")
	step("TheProviderFails", at(map[string]any{"problem": map[string]any{"reason": "BootstrapConfigFailed", "message": "KubeadmConfig ns/m: no CA"}}), []string{"bootstrap"}, "Pending", "Valid", "spec.userData.bootstrapTemplateRef: KubeadmConfig ns/m: no CA")
	step("TheUserDataExists", func() {
		at(map[string]any{"ready": true})()
		p.Composed["bootstrap"].SetUID("b-uid")
	}, []string{"bootstrap", "vm"}, "Provisioning", "InfrastructureReady", "")
	step("TheVMRuns", func() { p.VMIsCreated(); p.Reconcile(); p.VMRuns() }, []string{"bootstrap", "vm"}, "Joining", "NodeReady", "")
	step("TheNodeIsReady", func() { p.NodeIs("True", p.Now) }, []string{"bootstrap", "vm"}, "Running", "Valid", "")
	p.Now = p.Now.Add(3 * time.Second)
	p.Reconcile()
	node, _, _ := unstructured.NestedString(p.Machine.Object, "status", "nodeRef", "name")
	if got, _, _ := unstructured.NestedString(p.Composed["bootstrap"].Object, "spec", "forProvider", "nodeName"); got != node || node == "" {
		t.Errorf("the Bootstrap has the Node %q, want %q", got, node)
	}
}
