package function

import (
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/bootstrap"
)

const requirementBootstrapSchema = "bootstrap-schema"

// runBootstrapConfig composes the Bootstrap of a Machine whose user data is made by a bootstrap provider of Cluster API.
// Without such a class it asks for nothing. It returns false while Crossplane has not looked for the kind yet.
func runBootstrapConfig(req *fnv1.RunFunctionRequest, rsp step.Response, o *bootstrap.Observed) (done bool, err error) {
	if there, exists := step.Observed(req)[machinev1alpha1.ResourceBootstrap]; exists {
		return true, rsp.Compose(machinev1alpha1.ResourceBootstrap, keptBootstrap(there, o.Machine), o.Config.Ready)
	}
	ref := bootstrap.WantsConfig(*o)
	if ref == nil {
		return true, nil
	}
	problem, looked := lacksBootstraps(req, rsp, o.Class)
	if !looked {
		return false, nil
	}
	if problem != nil {
		o.ClassProblem = problem
		return true, nil
	}
	return true, rsp.Compose(machinev1alpha1.ResourceBootstrap, newBootstrap(o.Machine, *ref), false)
}

// lacksBootstraps returns the problem of a class that needs provider-clusterapi, if the API server has no kind of it.
func lacksBootstraps(req *fnv1.RunFunctionRequest, rsp step.Response, class *machinev1alpha1.MachineClass) (problem *plan.Problem, looked bool) {
	if class.Spec.UserData == nil || class.Spec.UserData.BootstrapTemplateRef == nil {
		return nil, true
	}
	has, looked := hasKind(req, rsp, requirementBootstrapSchema, clusterapi.BootstrapGroupVersionKind)
	if has || !looked {
		return nil, looked
	}
	apiVersion, kind := clusterapi.BootstrapGroupVersionKind.ToAPIVersionAndKind()
	return &plan.Problem{
		Reason: machinev1alpha1.ReasonProviderNotInstalled,
		Message: fmt.Sprintf("class %q: spec.userData.bootstrapTemplateRef: the API server has no kind %s of %s: install it by \"kubectl drover install clusterapi\", or if provider-clusterapi is Healthy, activate the kind by a ManagedResourceActivationPolicy",
			class.Reference().Key(), kind, apiVersion),
	}, true
}

// newBootstrap returns the Bootstrap of a Machine.
func newBootstrap(m *machinev1alpha1.Machine, ref machinev1alpha1.BootstrapTemplateReference) *unstructured.Unstructured {
	apiVersion, kind := clusterapi.BootstrapGroupVersionKind.ToAPIVersionAndKind()
	template := map[string]any{"apiGroup": ref.APIGroup, "kind": ref.Kind, "name": ref.Name}
	if ref.Namespace != "" {
		template["namespace"] = ref.Namespace
	}
	parameters := map[string]any{"templateRef": template, "version": m.Spec.Version}
	if m.Spec.FailureDomain != nil {
		parameters["failureDomain"] = *m.Spec.FailureDomain
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": names.OfCompanion(m.Name, m.UID, machinev1alpha1.ResourceBootstrap)},
		"spec": map[string]any{
			"forProvider":                parameters,
			"providerConfigRef":          map[string]any{"kind": ref.ProviderConfigRef.Kind, "name": ref.ProviderConfigRef.Name},
			"writeConnectionSecretToRef": map[string]any{"name": names.OfCompanion(m.Name, m.UID, machinev1alpha1.ResourceBootstrap+"-data")},
		},
	}}
}

// keptBootstrap returns a Bootstrap that exists as it is, with the Node of the Machine once it has joined.
func keptBootstrap(there plan.Object, m *machinev1alpha1.Machine) *unstructured.Unstructured {
	parameters, _, _ := unstructured.NestedMap(there.Object, "spec", "forProvider")
	if parameters == nil {
		parameters = map[string]any{}
	}
	if n := m.Status.NodeRef; n != nil {
		parameters["nodeName"] = n.Name
	}
	spec := map[string]any{"forProvider": parameters}
	for _, field := range []string{"providerConfigRef", "writeConnectionSecretToRef"} {
		if v, found, _ := unstructured.NestedMap(there.Object, "spec", field); found {
			spec[field] = v
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": there.GetAPIVersion(), "kind": there.GetKind(),
		"metadata": map[string]any{"name": there.GetName()}, "spec": spec,
	}}
}

// stateOfBootstrap decodes the state of a Bootstrap. Fields of another type than that of the API count as absent.
func stateOfBootstrap(there plan.Object) *bootstrap.Config {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(there.Object, append([]string{"status", "atProvider"}, path...)...)
		return s
	}
	c := &bootstrap.Config{UID: there.GetUID(), Waiting: text("waiting"), Error: syncError(there)}
	c.SecretName, _, _ = unstructured.NestedString(there.Object, "spec", "writeConnectionSecretToRef", "name")
	ready, _, _ := unstructured.NestedBool(there.Object, "status", "atProvider", "ready")
	c.Ready = ready && c.SecretName != "" && there.GetDeletionTimestamp() == nil
	if message := text("problem", "message"); message != "" {
		c.Problem = &plan.Problem{Reason: text("problem", "reason"), Message: message}
	}
	return c
}

// syncError returns the error of the last reconcile of a managed resource.
func syncError(there plan.Object) string {
	conditions, _, _ := unstructured.NestedSlice(there.Object, "status", "conditions")
	for _, c := range conditions {
		m, _ := c.(map[string]any)
		if m["type"] == "Synced" && m["status"] == string(metav1.ConditionFalse) {
			message, _ := m["message"].(string)
			return message
		}
	}
	return ""
}
