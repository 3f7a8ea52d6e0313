package conformance

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

// PolicyAccount is an Account whose provider may run without management policies.
type PolicyAccount interface {
	Account
	// RunWithPolicies restarts the provider of the account, with management policies or without.
	RunWithPolicies(t *testing.T, enabled bool)
}

// policiesOff tests two Machines of a provider that could not delete a VM. One is deleted before it
// has a VM. The other one runs once the provider is restarted with management policies.
func policiesOff(t *testing.T, c Cloud, _ *life) {
	w := newWorld(t, c)
	account, ok := w.account.(PolicyAccount)
	if !ok {
		t.Fatalf("nothing runs the provider of %s without management policies", c.Provider())
	}
	account.RunWithPolicies(t, false)
	deleted, kept := w.lone(t, "deleted"), w.lone(t, "kept")
	for _, m := range []*machinev1alpha1.Machine{deleted, kept} {
		w.await(t, m, func(m *machinev1alpha1.Machine) string {
			return reported(m.Status.Conditions, "Valid", machinev1alpha1.ReasonManagementPoliciesDisabled, "--enable-management-policies")
		})
	}
	t.Log(kept.Status.Conditions)
	if s := w.noVMs(t.Context()); s != "" {
		t.Errorf("the provider could delete none of the %s", s)
	}
	must(t, w.Client.Delete(t.Context(), deleted))
	patience.Eventually(t, func(ctx context.Context) string { return w.gone(ctx, deleted) })
	l := &unstructured.UnstructuredList{}
	kind := w.account.VMKind()
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	must(t, w.Client.List(t.Context(), l, client.InNamespace(w.Namespace)))
	if len(l.Items) != 1 {
		t.Errorf("there are %d of %s, want that of Machine %s", len(l.Items), kind.Kind, kept.Name)
	}
	account.RunWithPolicies(t, true)
	w.await(t, kept, isRunning)
	w.vm(t, kept)
	w.end(t, kept)
}
