package step

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
)

// CreationBegan says whether a VM resource's VM exists, or may exist because its
// provider began to create it.
func CreationBegan(vm Object) bool {
	a := vm.GetAnnotations()
	for _, key := range []string{
		meta.AnnotationKeyExternalName,
		meta.AnnotationKeyExternalCreatePending,
		meta.AnnotationKeyExternalCreateSucceeded,
		meta.AnnotationKeyExternalCreateFailed,
	} {
		if a[key] != "" {
			return true
		}
	}
	return false
}
