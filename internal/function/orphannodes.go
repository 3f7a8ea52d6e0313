package function

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/orphans"
)

// readNodes adds the answers of the NodeInventory about the Nodes of the VMs.
func readNodes(observed map[string]plan.Object, o *orphans.Observed) error {
	composed, ok := observed[machinev1alpha1.ResourceNodeInventory]
	if !ok {
		return nil
	}
	n, err := step.As[clusterv1alpha1.NodeInventory](composed)
	if err != nil {
		return err
	}
	// An answer to an older query may be older than the last pass.
	looked := n.Status.ObservedGeneration == n.GetGeneration()
	answers := map[string]orphans.Node{}
	for _, a := range n.Status.VirtualMachines {
		answers[a.ExternalName] = orphans.Node{Looked: looked, Machine: a.Machine, Name: a.Node, Cluster: a.Cluster, Ready: a.Ready, Problem: a.Problem}
	}
	for i := range o.Inventory.Unclaimed {
		o.Inventory.Unclaimed[i].Node = answers[o.Inventory.Unclaimed[i].ExternalName]
	}
	for i := range o.Adopted {
		o.Adopted[i].Node = answers[o.Adopted[i].ExternalName]
	}
	return nil
}

// newNodeInventory returns nil if no Node is looked for.
func newNodeInventory(c *machinev1alpha1.OrphanCollector, searches []orphans.Search) *unstructured.Unstructured {
	if len(searches) == 0 {
		return nil
	}
	queries := make([]any, 0, len(searches))
	for _, s := range searches[:min(len(searches), clusterv1alpha1.MaxNodeQueries)] {
		q := map[string]any{"externalName": s.ExternalName, "stage": string(stageOf(s))}
		for field, value := range map[string]string{
			"cluster": s.Cluster, "namespace": s.Owner.Namespace, "machineUID": string(s.Owner.UID),
			"nodeName": nodeNameOf(s.Owner), "providerID": s.ProviderID,
		} {
			if value != "" {
				q[field] = value
			}
		}
		queries = append(queries, q)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"virtualMachines": queries}}}
	u.SetGroupVersionKind(clusterv1alpha1.NodeInventoryGroupVersionKind)
	u.SetNamespace(namespaceOf(c))
	u.SetName(names.Inventory(c.Name, c.UID))
	u.SetLabels(labels(c))
	return u
}

func stageOf(s orphans.Search) clusterv1alpha1.NodeQueryStage {
	switch {
	case s.MayDelete:
		return clusterv1alpha1.NodeQueryDeletable
	case s.Adopted:
		return clusterv1alpha1.NodeQueryAdopted
	}
	return clusterv1alpha1.NodeQueryFound
}

// nodeNameOf returns the Node name of a Machine, which is also the name of its VM and of its VM
// resource. It is empty if the Machine cannot be identified.
func nodeNameOf(o orphans.Owner) string {
	switch {
	case o.VMName != "":
		return o.VMName
	case o.Machine == "":
		return ""
	}
	return names.OfMachine(o.Machine, o.UID)
}
