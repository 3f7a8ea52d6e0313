package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	authv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// secrecy tests the join token of a Machine that has joined. When the suite ends, the Witness
// searches all other objects, logs and requests for it.
func secrecy(t *testing.T, c Cloud, l *life) {
	w := l.world
	tokens := w.Witness.Tokens(w.Namespace)
	if len(tokens) == 0 {
		t.Fatal("no join token was recorded: this shows nothing")
	}
	for _, token := range tokens {
		patience.Eventually(t, func(ctx context.Context) string {
			review := &authv1.SelfSubjectReview{}
			if err := w.Cluster.WithToken(t, token).Create(ctx, review); !apierrors.IsUnauthorized(err) {
				return fmt.Sprintf("a token whose Machine has joined authenticates as %q, %v", review.Status.UserInfo.Username, err)
			}
			return ""
		})
	}

	kind := w.account.VMKind()
	vms := &unstructured.UnstructuredList{}
	vms.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	must(t, w.Client.List(t.Context(), vms, client.InNamespace(w.Namespace), client.MatchingLabels{machinev1alpha1.LabelMachine: l.machine.Name}))
	if len(vms.Items) != 1 {
		t.Fatalf("%d of %s are of Machine %s", len(vms.Items), kind.Kind, l.machine.Name)
	}
	vm := vms.Items[0].Object
	mapping, err := w.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	must(t, err)
	resource := mapping.Resource.GroupResource()
	if w.Witness.Versions(resource) == 0 {
		t.Errorf("no version of %s was recorded: its VMs may leak", resource)
	}
	if f, ok := kit.PlainFieldOf(c.Provider()); ok {
		value, _, _ := unstructured.NestedString(vm, f.Path...)
		if f.Resource != resource || !w.Witness.Finds([]byte(value)) {
			t.Errorf("field %s of %s is said to have the user data, and has not", f, f.Resource)
		}
		unstructured.RemoveNestedField(vm, f.Path...)
	}
	b, err := json.Marshal(vm)
	must(t, err)
	if w.Witness.Finds(b) {
		t.Errorf("%s %s has the join token in a field that is not documented", kind.Kind, vms.Items[0].GetName())
	}
}
