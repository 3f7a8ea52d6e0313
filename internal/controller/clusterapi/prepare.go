package clusterapi

import (
	"context"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	coordinationv1 "k8s.io/api/coordination/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	kmeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// howToShare is the end of an error that a shared Cluster does not have.
const howToShare = "docs/providers/cluster-api.md#a-cluster-that-cluster-api-keeps"

// Prepare refuses a VM that would not be made, before anything is created.
func (a *account) Prepare(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	p := vm.Spec.ForProvider
	if p.Name == nil || p.InfraMachine == nil || p.InfraMachine.Spec == nil {
		return native.Invalid("infraMachine", "name and infraMachine.spec are required")
	}
	if !slices.Contains(a.spec.InfraMachineKinds, p.InfraMachine.GroupKind) {
		return native.Invalid("infraMachine.kind", "invalid value %q of %s: must be one of the kinds of spec.infraMachineKinds of the configuration: %v", p.InfraMachine.Kind, p.InfraMachine.APIGroup, a.spec.InfraMachineKinds)
	}
	k, err := a.kindOf(ctx, p.InfraMachine.GroupKind.GroupKind())
	if err != nil {
		return err
	}
	if err := a.refuseControllers(ctx, k.core, vm.Namespace); err != nil {
		return err
	}
	if _, err := a.keepCluster(ctx, k.core, vm.Namespace); err != nil {
		return native.Refused(err)
	}
	return a.dryRun(ctx, vm, k)
}

// dryRun has the API server check the InfraMachine by its schema and by the webhooks of its provider.
func (a *account) dryRun(ctx context.Context, vm *v1alpha1.VirtualMachine, k kind) error {
	o, err := infraMachineOf(vm, meta.GetExternalName(vm), a.spec, k)
	if err != nil {
		return native.Invalid("infraMachine.spec", "%w", err)
	}
	switch err := a.kube.Create(ctx, o, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict)); {
	case kerrors.IsAlreadyExists(err):
		return nil // Create compares it.
	case kerrors.IsInvalid(err), kerrors.IsBadRequest(err):
		return native.Invalid("infraMachine.spec", "%w", shortened(err))
	case kmeta.IsNoMatchError(err):
		return native.Invalid("infraMachine.kind", "the API server does not serve %s, which the label of the CRD %s names", k.GroupVersionKind, crdName(k.GroupKind()))
	default:
		return classify("cannot check the "+k.Kind, err)
	}
}

// refuseControllers returns an error if Cluster API's own controllers run: they would delete, drain and change the same
// Clusters and Machines. In a shared Cluster they do not, because the Machines of Drover are paused.
func (a *account) refuseControllers(ctx context.Context, c contract, namespace string) error {
	list := &coordinationv1.LeaseList{}
	if err := a.kube.List(ctx, list, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", v1alpha1.LeaseOfClusterAPI)}); err != nil {
		return classify("cannot list Leases "+v1alpha1.LeaseOfClusterAPI, err)
	}
	for _, l := range list.Items {
		if l.Name == v1alpha1.LeaseOfClusterAPI && v1alpha1.IsHeld(l.Spec, a.now()) {
			cluster, err := a.get(ctx, c.coreKind("Cluster"), namespace, a.spec.ClusterName)
			if err != nil || isShared(cluster) {
				return err
			}
			return refused("", fmt.Errorf("the controllers of Cluster API run in the cluster (Lease %s/%s is held): they would fight with Drover over the same Clusters and Machines. Stop them, such as by \"kubectl scale -n %s deployment/capi-controller-manager --replicas=0\", use a cluster with the providers alone, or share the Cluster with them: %s", l.Namespace, l.Name, l.Namespace, howToShare))
		}
	}
	return nil
}
