package packageguard

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	machineCRD    = "machines." + v1alpha1.Group
	machineSetXRD = "machinesets." + v1alpha1.Group

	packageGroup   = "pkg.crossplane.io"
	packageVersion = "v1"

	providerKind      = "Provider"
	configurationKind = "Configuration"
	functionKind      = "Function"

	// labelPackage of a package revision names its package.
	labelPackage = packageGroup + "/package"
)

var (
	crdGroupVersionKind = apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	xrdGroupVersionKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v2", Kind: "CompositeResourceDefinition"}
)

func packageGroupVersionKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: packageGroup, Version: packageVersion, Kind: kind}
}

func revisionGroupVersionKind(kind string) schema.GroupVersionKind {
	return packageGroupVersionKind(kind + "Revision")
}

// newMetadata returns the metadata of an object with only its kind and name.
func newMetadata(gvk schema.GroupVersionKind, name string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	m.SetName(name)
	return m
}

// A finder finds the name of the package to guard, empty if there is none.
type finder interface {
	find(ctx context.Context) (string, error)
}

// revisionOf returns the reference to the revision of a package of this kind that installed the
// definition, nil if there is none. Inactive revisions own the definition too, but only the active
// one controls it. Crossplane may convert a CRD of a Provider to a ManagedResourceDefinition, which
// then owns the CRD without controlling it.
func revisionOf(definition *metav1.PartialObjectMetadata, kind string) *metav1.OwnerReference {
	by := metav1.GetControllerOf(definition)
	if by == nil || schema.FromAPIVersionAndKind(by.APIVersion, by.Kind).GroupKind() != revisionGroupVersionKind(kind).GroupKind() {
		return nil
	}
	return by
}

// A definitionFinder finds the package that installed a CRD or an XRD.
type definitionFinder struct {
	definition schema.GroupVersionKind
	name       string
	kind       string // of the package
	view       *view  // of the definition
	live       client.Reader

	// revision is the UID of the revision that found was read from.
	revision types.UID
	found    string
}

// find calls the API server if another revision controls the definition than at the last
// call.
func (f *definitionFinder) find(ctx context.Context) (string, error) {
	definition := newMetadata(f.definition, f.name)
	if found, err := f.view.get(ctx, definition); !found || err != nil {
		return "", err
	}
	ref := revisionOf(definition, f.kind)
	if ref == nil {
		return "", nil
	}
	if ref.UID == f.revision {
		return f.found, nil
	}
	gvk := revisionGroupVersionKind(f.kind)
	revision := newMetadata(gvk, ref.Name)
	if err := f.live.Get(ctx, client.ObjectKeyFromObject(revision), revision); err != nil {
		if kerrors.IsNotFound(err) {
			return "", nil // Another revision becomes the controller of the definition.
		}
		return "", wrap(err, "get %s %s", gvk.Kind, ref.Name)
	}
	if revision.GetUID() != ref.UID {
		return "", nil
	}
	f.revision, f.found = ref.UID, revision.GetLabels()[labelPackage]
	return f.found, nil
}

// A functionFinder finds the Function whose steps run in this process.
type functionFinder struct {
	name string
	view *view
}

func (f *functionFinder) find(ctx context.Context) (string, error) {
	found, err := f.view.get(ctx, newMetadata(packageGroupVersionKind(functionKind), f.name))
	if !found || err != nil {
		return "", err
	}
	return f.name, nil
}

// A groupFinder finds the Provider of the first kind of an API group that a Machine has resources of.
// All kinds of a group are assumed to come from one package.
type groupFinder struct {
	group    string
	machines client.Reader // a cache with the index byGroup
	mapper   meta.RESTMapper
	provider func(crd string) (*definitionFinder, error)

	// kinds are the finders by the name of the CRD.
	kinds map[string]*definitionFinder
}

func (f *groupFinder) find(ctx context.Context) (string, error) {
	list := &v1alpha1.MachineList{}
	if err := f.machines.List(ctx, list, client.Limit(1), client.UnsafeDisableDeepCopy, client.MatchingFields{byGroup: f.group}); err != nil || len(list.Items) == 0 {
		return "", err
	}
	for _, r := range list.Items[0].Status.ResourceRefs {
		gvk := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
		if gvk.Group != f.group {
			continue
		}
		m, err := f.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return "", err
		}
		crd := m.Resource.Resource + "." + f.group
		if f.kinds[crd] == nil {
			if f.kinds[crd], err = f.provider(crd); err != nil {
				return "", err
			}
		}
		return f.kinds[crd].find(ctx)
	}
	return "", nil
}

// wrap an error into one that names the failed operation.
func wrap(err error, format string, args ...any) error {
	return fmt.Errorf("cannot %s: %w", fmt.Sprintf(format, args...), err)
}
