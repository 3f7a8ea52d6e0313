package kubevirt

import (
	"context"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

// Types of resources.
const (
	typeDataVolume = "DataVolume"
	typeClaim      = "PersistentVolumeClaim"
)

var (
	dataVolumes = schema.GroupVersionResource{Group: "cdi.kubevirt.io", Version: "v1beta1", Resource: "datavolumes"}
	claims      = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
)

// ListResources lists the DataVolumes with the label of the installation, and the
// PersistentVolumeClaims with it that belong to no DataVolume of the list: CDI gives the
// claim of a DataVolume its name and its labels. A cluster without CDI has no DataVolumes.
func (l *lister) ListResources(ctx context.Context, installation string) ([]inventory.Resource, bool, error) {
	vms, err := l.labeled(ctx, virtualMachines, installation)
	if err != nil {
		return nil, false, err
	}
	volumes, err := l.labeled(ctx, dataVolumes, installation)
	if err != nil && !kerrors.IsNotFound(err) {
		return nil, false, err
	}
	pvcs, err := l.labeled(ctx, claims, installation)
	if err != nil {
		return nil, false, err
	}
	return disksOf(installation, vms, volumes, pvcs), true, nil
}

func disksOf(installation string, vms, volumes, pvcs []unstructured.Unstructured) []inventory.Resource {
	owners := map[types.UID]string{}
	for i := range vms {
		owners[vms[i].GetUID()] = vms[i].GetName()
	}
	var out []inventory.Resource
	seen := map[types.NamespacedName]bool{}
	for _, list := range []struct {
		kind  string
		items []unstructured.Unstructured
	}{{typeDataVolume, volumes}, {typeClaim, pvcs}} {
		for i := range list.items {
			o := &list.items[i]
			key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
			if o.GetLabels()[machinev1alpha1.TagInstallation] != installation || o.GetDeletionTimestamp() != nil || seen[key] {
				continue
			}
			seen[key] = true
			r := inventory.Resource{Type: list.kind, ID: key.String(), Tags: o.GetLabels(), CreatedAt: o.GetCreationTimestamp().UTC()}
			for _, ref := range o.GetOwnerReferences() {
				if name := owners[ref.UID]; name != "" {
					r.AttachedTo = name
				}
			}
			out = append(out, r)
		}
	}
	return out
}
