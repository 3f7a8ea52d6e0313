package nodeinventory

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

// machinesOf returns the names of the Machines in the namespaces of the queries, by namespace and
// name of their VM. The name of a VM has a hash of its Machine's UID, and the tags of some clouds do
// not name the Machine. So only a list of the Machines shows which Machine has the VM of a name.
func (r *reconciler) machinesOf(ctx context.Context, queries []clusterv1alpha1.NodeQuery) (map[types.NamespacedName]string, error) {
	out, listed := map[types.NamespacedName]string{}, map[string]bool{}
	for _, q := range queries {
		if q.Namespace == "" || q.NodeName == "" || listed[q.Namespace] {
			continue
		}
		listed[q.Namespace] = true
		list := &machinev1alpha1.MachineList{}
		if err := r.client.List(ctx, list, client.InNamespace(q.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("cannot list Machines in the namespace %s: %w", q.Namespace, err)
		}
		for i := range list.Items {
			m := &list.Items[i]
			out[types.NamespacedName{Namespace: m.Namespace, Name: names.OfMachine(m.Name, m.UID)}] = m.Name
		}
	}
	return out, nil
}
