package vm

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/text"
)

// Messages of crossplane-runtime and of the providers that Drover wraps.
const (
	// createIncomplete is in Synced if the runtime found a creation that began and did not end, and
	// refuses to continue. It is not there while a creation is still running.
	createIncomplete = "cannot determine creation result"
	// NotExist is in Synced if a resource that may only be observed does not exist.
	NotExist = "external resource does not exist"
	// policiesDisabled is in Synced if the provider runs without management policies, and the
	// resource has policies other than the default. The runtime then does nothing with the
	// resource, and does not even delete it.
	policiesDisabled = "`spec.managementPolicies` is set to a non-default value but the feature is not enabled"
)

// maxMessage is the length to which a provider's error is shortened for users. Some providers put
// whole requests into their errors.
const maxMessage = 1024

type conditions []xpv2.Condition

// Get returns a condition, empty if there is none of the type.
func (c conditions) Get(t xpv2.ConditionType) xpv2.Condition {
	for _, condition := range c {
		if condition.Type == t {
			return condition
		}
	}
	return xpv2.Condition{}
}

// conditionsOf a managed resource of any kind.
func conditionsOf(vm *unstructured.Unstructured) conditions {
	var out conditions
	list, _, _ := unstructured.NestedSlice(vm.Object, "status", "conditions")
	for _, v := range list {
		m, _ := v.(map[string]any)
		s := func(k string) string { v, _ := m[k].(string); return v }
		out = append(out, xpv2.Condition{
			Type:    xpv2.ConditionType(s("type")),
			Status:  corev1.ConditionStatus(s("status")),
			Reason:  xpv2.ConditionReason(s("reason")),
			Message: s("message"),
		})
	}
	return out
}

func providerError(c conditions) string {
	for _, t := range []xpv2.ConditionType{machinev1alpha1.ConditionLastAsyncOperation, xpv2.TypeSynced} {
		if condition := c.Get(t); condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}

// isCreateUnknown reports whether the provider of a companion gave up on a creation whose result it does not know.
func isCreateUnknown(there plan.Object) bool {
	return meta.ExternalCreateIncomplete(there) && strings.Contains(conditionsOf(there.Unstructured).Get(xpv2.TypeSynced).Message, createIncomplete)
}

// whole adds the top-level fields that expressions may expect in every resource.
func whole(vm map[string]any) map[string]any {
	out := map[string]any{"metadata": map[string]any{}, "spec": map[string]any{}, "status": map[string]any{}}
	for k, v := range vm {
		out[k] = v
	}
	return out
}

func truncate(s string) string { return text.Shorten(s, maxMessage) }

// withConfig adds the name of the configuration whose credentials are insufficient. The cloud's
// message does not contain it.
func withConfig(message string, vm plan.Object) string {
	kind, _, _ := unstructured.NestedString(vm.Object, "spec", "providerConfigRef", "kind")
	name, _, _ := unstructured.NestedString(vm.Object, "spec", "providerConfigRef", "name")
	if name == "" || strings.Contains(message, kind) && strings.Contains(message, strconv.Quote(name)) {
		return message
	}
	return truncate(fmt.Sprintf("%s %q: %s", kind, name, message))
}
