package inventory

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/inventory/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// page is how many managed resources are read at once.
const page = 500

// claims returns the managed resources of a kind that have a controller, by external name. It reads
// them from the API server, because a cache may lack the newest. A managed resource without a
// controller, such as one that a backup restored, is no claim: no Machine takes care of its VM.
func claims(ctx context.Context, live client.Reader, kind v1alpha1.VirtualMachineKind) (map[string]v1alpha1.Claim, error) {
	gvk, err := gvkOf(kind)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(kind.Kind + "List"))
	found := map[string]v1alpha1.Claim{}
	for more := ""; ; {
		if err := live.List(ctx, list, client.Limit(page), client.Continue(more)); err != nil {
			return nil, fmt.Errorf("cannot list %s of %s: %w", kind.Kind, kind.APIVersion, err)
		}
		for i := range list.Items {
			c := claimOf(&list.Items[i])
			// If several have the same name, the claim of a Machine takes precedence.
			if c.ExternalName != "" && found[c.ExternalName].Machine == "" && metav1.GetControllerOfNoCopy(&list.Items[i]) != nil {
				found[c.ExternalName] = c
			}
		}
		if more = list.GetContinue(); more == "" {
			return found, nil
		}
	}
}

func gvkOf(kind v1alpha1.VirtualMachineKind) (schema.GroupVersionKind, error) {
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("spec.forProvider.virtualMachine.apiVersion: invalid value %q: must be like example.org/v1: %w", kind.APIVersion, err)
	}
	return gv.WithKind(kind.Kind), nil
}

func claimOf(o metav1.Object) v1alpha1.Claim {
	c := v1alpha1.Claim{ExternalName: meta.GetExternalName(o), Namespace: o.GetNamespace(), Name: o.GetName()}
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != machinev1alpha1.MachineGroupVersionKind.Kind {
		return c
	}
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && gv.Group == machinev1alpha1.Group {
		c.Machine = owner.Name
	}
	return c
}

// ours returns which claims name the configuration and the place of an inventory. Only their VMs
// are in the account that it lists.
func ours(ctx context.Context, live client.Reader, i Inventory, some []v1alpha1.Claim) (map[string]bool, error) {
	p := i.Asked()
	gvk, err := gvkOf(p.VirtualMachine)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, c := range some {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		err := live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, u)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot get %s %s/%s: %w", p.VirtualMachine.Kind, c.Namespace, c.Name, err)
		}
		out[c.ExternalName] = meta.GetExternalName(u) == c.ExternalName && u.GetDeletionTimestamp() == nil && isOurs(u, i.GetNamespace(), i.GetProviderConfigReference(), p)
	}
	return out, nil
}

// namespacedConfig is the kind of configurations that serve one namespace.
const namespacedConfig = "ProviderConfig"

func isOurs(u *unstructured.Unstructured, namespace string, ref *xpv2.ProviderConfigReference, p v1alpha1.InventoryParameters) bool {
	paved := fieldpath.Pave(u.Object)
	has := func(path, want string) bool {
		if path == "" {
			return true
		}
		got, err := paved.GetString(path)
		return err == nil && got == want
	}
	return ref != nil && (ref.Kind != namespacedConfig || u.GetNamespace() == namespace) &&
		has("spec.providerConfigRef.kind", ref.Kind) && has("spec.providerConfigRef.name", ref.Name) &&
		has(p.VirtualMachine.RegionPath, p.Region) && has(p.VirtualMachine.NamespacePath, p.Namespace)
}
