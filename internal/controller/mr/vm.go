package mr

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Missing is the condition Ready of a VM that existed and does not exist any more.
func Missing(message string) xpv2.Condition {
	c := xpv2.Unavailable().WithMessage(message)
	c.Reason = machinev1alpha1.ReasonMissing
	return c
}

// NameByUID is an initializer that sets the external name to the UID of the resource. The reconciler
// writes it together with the finalizer; until then, it is derived again with the same result.
func NameByUID(_ context.Context, mg resource.Managed) error {
	if meta.GetExternalName(mg) == "" {
		meta.SetExternalName(mg, string(mg.GetUID()))
	}
	return nil
}

// SecretValue returns the value of a key of a Secret in a namespace.
func SecretValue(ctx context.Context, c client.Reader, namespace, name, key string) (string, error) {
	s := &corev1.Secret{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, s); err != nil {
		return "", fmt.Errorf("cannot get Secret %q: %w", name, err)
	}
	b, ok := s.Data[key]
	if !ok {
		return "", fmt.Errorf("no key %q in Secret %q, which has only %q", key, name, slices.Sorted(maps.Keys(s.Data)))
	}
	return string(b), nil
}
