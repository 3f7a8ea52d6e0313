package function

import (
	"strings"
	"testing"

	"github.com/crossplane/function-sdk-go/resource"
	"google.golang.org/protobuf/proto"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const clusterClassJSON = `{
	"apiVersion": "machine.drover.dev/v1alpha1", "kind": "ClusterMachineClass",
	"metadata": {"name": "small"},
	"spec": {"provider": "local", "allowedNamespaces": [NAMESPACES]}
}`

// TestASetUsesAClusterMachineClassOnlyIfItServesItsNamespace runs the step that decides whether
// Machines are created.
func TestASetUsesAClusterMachineClassOnlyIfItServesItsNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		namespaces, want string
	}{
		"ItsNamespace": {`"default"`, ""},
		"APattern":     {`"team-a", "def*"`, ""},
		"Another":      {`"team-a"`, `spec.template.spec.classRef.name: ClusterMachineClass "small": Machines of namespace "default" may not use it: add "default", or a pattern that matches it, to its spec.allowedNamespaces`},
		"None":         {``, `may not use it`},
	} {
		t.Run(name, func(t *testing.T) {
			req := setRequest(3, 0)
			ref := req.GetObserved().GetComposite().GetResource().GetFields()["spec"].GetStructValue().GetFields()["template"].GetStructValue().GetFields()["spec"].GetStructValue().GetFields()["classRef"].GetStructValue()
			ref.Fields["kind"] = resource.MustStructJSON(`{"kind": "ClusterMachineClass"}`).Fields["kind"]
			req.RequiredResources["class"].Items[0].Resource = resource.MustStructJSON(strings.ReplaceAll(clusterClassJSON, "NAMESPACES", tc.namespaces))
			rsp, err := runReplicas(now, req)
			if err != nil {
				t.Fatal(err)
			}
			if got := rsp.GetRequirements().GetResources()["class"]; got.GetKind() != "ClusterMachineClass" || got.GetNamespace() != "" || got.GetMatchName() != "small" {
				t.Errorf("requires %v", got)
			}
			valid := conditionOf(rsp, machinev1alpha1.ConditionValid)
			if refused := valid.GetStatus() == fnv1.Status_STATUS_CONDITION_FALSE; refused != (tc.want != "") || !strings.Contains(valid.GetMessage(), tc.want) {
				t.Errorf("Valid is %v", valid)
			}
			if made := len(groupOf(t, proto.CloneOf(rsp)).Spec.Machines); (made == 0) != (tc.want != "") {
				t.Errorf("%d Machines are wanted", made)
			}
		})
	}
}

func conditionOf(rsp *fnv1.RunFunctionResponse, kind string) *fnv1.Condition {
	for _, c := range rsp.GetConditions() {
		if c.GetType() == kind {
			return c
		}
	}
	return nil
}
