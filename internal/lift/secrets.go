package lift

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	ujresource "github.com/crossplane/upjet/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkSecrets says which Secret, that tr's parameters refer to, is not there. upjet
// takes it for empty, which is right when tr is deleted, and makes a VM without
// user data when it is created.
func checkSecrets(ctx context.Context, c client.Reader, tr ujresource.Terraformed) error {
	paved, err := fieldpath.PaveObject(tr)
	if err != nil {
		return err
	}
	paths := tr.GetConnectionDetailsMapping()
	for _, path := range slices.Sorted(maps.Values(paths)) {
		var ref struct {
			Name string `json:"name"`
			Key  string `json:"key"`
		}
		if !strings.HasPrefix(path, "spec.forProvider.") {
			continue
		}
		if err := paved.GetValueInto(path, &ref); err != nil {
			if fieldpath.IsNotFound(err) {
				continue
			}
			return fmt.Errorf("%s: %w", path, err)
		}
		s := &corev1.Secret{}
		if err := c.Get(ctx, types.NamespacedName{Namespace: tr.GetNamespace(), Name: ref.Name}, s); err != nil {
			return fmt.Errorf("%s: cannot get Secret %q: %w", path, ref.Name, err)
		}
		if _, ok := s.Data[ref.Key]; !ok {
			return fmt.Errorf("%s: Secret %q has no key %q, only %q", path, ref.Name, ref.Key, slices.Sorted(maps.Keys(s.Data)))
		}
	}
	return nil
}
