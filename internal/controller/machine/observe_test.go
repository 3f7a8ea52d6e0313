package machine

import (
	"context"
	"errors"
	"strings"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// brokenCache is one whose reads fail.
type brokenCache struct {
	client.Reader
	err error
}

func (r brokenCache) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return r.err
}

func TestAKindThatMayNotBeListedIsReportedAsAMissingRight(t *testing.T) {
	const asks = "may provider-drover list and watch VirtualMachine.example.org?"
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"TheCacheIsNotFilledInTime": {kerrors.NewTimeoutError("failed waiting for *unstructured.Unstructured Informer to sync", 0), asks},
		"TheReadTakesTooLong":       {context.DeadlineExceeded, asks},
		"AnyOtherError":             {errors.New("broken"), "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{resources: brokenCache{err: tc.err}}
			_, err := r.read(t.Context(), schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "VirtualMachine"}, types.NamespacedName{Name: "vm"})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}
