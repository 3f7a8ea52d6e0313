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

// checkSecrets returns an error that names a missing Secret to which tr's parameters refer. upjet treats it as
// empty. That is right when tr is deleted, but creates a VM without user data when tr is created.
func checkSecrets(ctx context.Context, c client.Reader, tr ujresource.Terraformed) error {
	paved, err := fieldpath.PaveObject(tr)
	if err != nil {
		return fmt.Errorf("cannot read the parameters: %w", err)
	}
	for _, field := range slices.Sorted(maps.Values(tr.GetConnectionDetailsMapping())) {
		if strings.HasPrefix(field, "status.") { // It is written, not read.
			continue
		}
		field = strings.TrimPrefix(field, "spec.forProvider.")
		for _, parent := range []string{"spec.forProvider.", "spec.initProvider."} {
			paths, err := paved.ExpandWildcards(parent + field)
			if err != nil && !fieldpath.IsNotFound(err) {
				return fmt.Errorf("%s: %w", parent+field, err)
			}
			for _, p := range paths {
				if err := checkSecret(ctx, c, tr.GetNamespace(), paved, p); err != nil {
					return fmt.Errorf("%s: %w", p, err)
				}
			}
		}
	}
	return nil
}

func checkSecret(ctx context.Context, c client.Reader, namespace string, paved *fieldpath.Paved, path string) error {
	var ref struct {
		Name string `json:"name"`
		Key  string `json:"key"`
	}
	if err := paved.GetValueInto(path, &ref); err != nil {
		return err
	}
	s := &corev1.Secret{}
	if err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, s); err != nil {
		return fmt.Errorf("cannot get Secret %q: %w", ref.Name, err)
	}
	if _, ok := s.Data[ref.Key]; !ok {
		return fmt.Errorf("no key %q in Secret %q, which has only %q", ref.Key, ref.Name, slices.Sorted(maps.Keys(s.Data)))
	}
	return nil
}
