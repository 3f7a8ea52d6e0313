package machine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/identity"
	"github.com/drover-dev/drover/internal/target"
)

// Indexes of Machines.
const (
	// byNode is by the configuration and the name of the Node.
	byNode = "drover.node"
	// byToken is by the UID of the Machine, with which its Node registers.
	byToken = "drover.token"
	// byTokenID is by the configuration and the ID of the join token.
	byTokenID = "drover.tokenID"
	// byProviderID is by the cluster and the providerID that the VM resource reported. Users can write the one in the
	// spec: a tenant could put the providerID of another tenant's VM into many Machines.
	byProviderID = "drover.providerID"
	// byCluster is by the configuration.
	byCluster = "drover.cluster"
	// byClass is by the key of the class.
	byClass = "drover.class"
)

// byMachine is the index of composed resources by their label with the name of a Machine.
const byMachine = "drover.machine"

// keys of the indexes.
var keys = map[string]func(*machinev1alpha1.Machine) string{
	byNode:       func(m *machinev1alpha1.Machine) string { return refOf(m).String() + " " + identity.NodeName(m) },
	byToken:      func(m *machinev1alpha1.Machine) string { return string(identity.UID(m)) },
	byTokenID:    func(m *machinev1alpha1.Machine) string { return refOf(m).String() + " " + identity.TokenID(m) },
	byProviderID: func(m *machinev1alpha1.Machine) string { return ofCluster(refOf(m), m.Status.ProviderID) },
	byCluster:    func(m *machinev1alpha1.Machine) string { return refOf(m).String() },
	byClass:      func(m *machinev1alpha1.Machine) string { return m.Spec.ClassRef.Key() },
}

// ofCluster is the key of a providerID in a cluster, empty if there is none.
func ofCluster(ref target.Ref, providerID string) string {
	if providerID == "" {
		return ""
	}
	return ref.String() + " " + providerID
}

func index(ctx context.Context, indexer client.FieldIndexer) error {
	for name, key := range keys {
		if err := indexer.IndexField(ctx, &machinev1alpha1.Machine{}, name, func(obj client.Object) []string {
			m, ok := obj.(*machinev1alpha1.Machine)
			if !ok || key(m) == "" {
				return nil
			}
			return []string{key(m)}
		}); err != nil {
			return err
		}
	}
	return nil
}

// indexByMachine indexes the resources of a kind.
func indexByMachine(ctx context.Context, resources client.FieldIndexer, gvk schema.GroupVersionKind) error {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return resources.IndexField(ctx, obj, byMachine, machineLabel)
}

// machineLabel is the key of the index byMachine.
func machineLabel(obj client.Object) []string {
	if name := obj.GetLabels()[machinev1alpha1.LabelMachine]; name != "" {
		return []string{name}
	}
	return nil
}

// requestsFor returns requests for the Machines that an index finds.
func requestsFor(ctx context.Context, reader client.Reader, opts ...client.ListOption) []reconcile.Request {
	list := &machinev1alpha1.MachineList{}
	if reader.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...) != nil {
		return nil // The cache is stopping.
	}
	out := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}
