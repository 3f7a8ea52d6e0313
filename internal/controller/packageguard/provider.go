package packageguard

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	machineCRD = "machines." + v1alpha1.Group

	providerGroup   = "pkg.crossplane.io"
	providerVersion = "v1"
	providerKind    = "Provider"

	// labelProvider of a ProviderRevision names its Provider.
	labelProvider = providerGroup + "/package"
)

var (
	crdGroupVersionKind      = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	revisionGroupVersionKind = schema.GroupVersionKind{Group: providerGroup, Version: providerVersion, Kind: "ProviderRevision"}
)

// newMetadata returns the metadata of an object with nothing but its kind and name.
func newMetadata(gvk schema.GroupVersionKind, name string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	m.SetName(name)
	return m
}

// revisionOf returns the reference to the ProviderRevision that installed the CRD, nil if
// none did. Inactive revisions own the CRD too, but only the active one controls it.
// Crossplane may convert the package's CRD to a ManagedResourceDefinition, which then
// owns the CRD without controlling it.
func revisionOf(crd *metav1.PartialObjectMetadata) *metav1.OwnerReference {
	by := metav1.GetControllerOf(crd)
	if by == nil || schema.FromAPIVersionAndKind(by.APIVersion, by.Kind).GroupKind() != revisionGroupVersionKind.GroupKind() {
		return nil
	}
	return by
}

// A providerFinder finds the Provider that installed the Machine CRD.
type providerFinder struct {
	crd  *view
	live client.Reader

	// revision is the UID of the ProviderRevision that provider was read from.
	revision types.UID
	provider string
}

// find returns the name of the Provider, empty if there is none. It calls the API server
// if another revision controls the CRD than at the last call.
func (f *providerFinder) find(ctx context.Context) (string, error) {
	crd := newMetadata(crdGroupVersionKind, machineCRD)
	if found, err := f.crd.get(ctx, crd); !found || err != nil {
		return "", err
	}
	ref := revisionOf(crd)
	if ref == nil {
		return "", nil
	}
	if ref.UID == f.revision {
		return f.provider, nil
	}
	revision := newMetadata(revisionGroupVersionKind, ref.Name)
	if err := f.live.Get(ctx, client.ObjectKeyFromObject(revision), revision); err != nil {
		if kerrors.IsNotFound(err) {
			return "", nil // Another revision becomes the controller of the CRD.
		}
		return "", wrap(err, "get ProviderRevision %s", ref.Name)
	}
	if revision.GetUID() != ref.UID {
		return "", nil
	}
	f.revision, f.provider = ref.UID, revision.GetLabels()[labelProvider]
	return f.provider, nil
}

// wrap an error into one that names the failed operation.
func wrap(err error, format string, args ...any) error {
	return fmt.Errorf("cannot %s: %w", fmt.Sprintf(format, args...), err)
}
