package drover

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestADeletionIsOfTheObjectOfTheState: a user may have created another object of its name since.
func TestADeletionIsOfTheObjectOfTheState(t *testing.T) {
	k := kinds[1]
	of := func(uid string) *object {
		u := k.object("team", "workers")
		u.SetUID("younger")
		c := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{k.gvr(): k.gvk.Kind + "List"}, u)
		// The fake API server does not check preconditions.
		c.PrependReactor("delete", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			o := a.(clienttesting.DeleteActionImpl).DeleteOptions
			if o.PropagationPolicy == nil || *o.PropagationPolicy != metav1.DeletePropagationBackground {
				t.Errorf("deleted with %+v", o)
			}
			if p := o.Preconditions; p != nil && p.UID != nil && *p.UID != "younger" {
				return true, nil, kerrors.NewConflict(schema.GroupResource{Resource: k.plural}, "workers", nil)
			}
			return false, nil, nil
		})
		r := &object{kind: k, client: c}
		state := objectModel{Namespace: types.StringValue("team"), Name: types.StringValue("workers"), UID: types.StringValue(uid)}
		if err := r.remove(t.Context(), state, time.Minute); err != nil {
			t.Errorf("UID %s: %v", uid, err)
		}
		return r
	}
	if left, err := of("older").get(t.Context(), "team", "workers"); err != nil || left == nil {
		t.Errorf("the younger object: %v, error %v", left, err)
	}
	if left, err := of("younger").get(t.Context(), "team", "workers"); err != nil || left != nil {
		t.Errorf("the object of the state: %v, error %v", left, err)
	}
}
