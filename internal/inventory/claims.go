package inventory

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/inventory/v1alpha1"
)

// page is how many managed resources are read at once.
const page = 500

// claims are the external names of the managed resources of a kind that a controller has, as the
// API server has them now: a cache may lack the newest. One without a controller, such as a
// backup brings back, stands for a VM that nobody looks after.
func claims(ctx context.Context, live client.Reader, kind v1alpha1.VirtualMachineKind) (map[string]bool, error) {
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("spec.forProvider.virtualMachine.apiVersion: invalid value %q: must be like example.org/v1: %w", kind.APIVersion, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gv.WithKind(kind.Kind + "List"))
	names := map[string]bool{}
	for more := ""; ; {
		if err := live.List(ctx, list, client.Limit(page), client.Continue(more)); err != nil {
			return nil, fmt.Errorf("cannot list %s of %s: %w", kind.Kind, kind.APIVersion, err)
		}
		for i := range list.Items {
			if name := meta.GetExternalName(&list.Items[i]); name != "" && metav1.GetControllerOfNoCopy(&list.Items[i]) != nil {
				names[name] = true
			}
		}
		if more = list.GetContinue(); more == "" {
			return names, nil
		}
	}
}
