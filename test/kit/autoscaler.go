package kit

import (
	"context"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// ScanInterval is how often a cluster-autoscaler looks at its node groups by default.
const ScanInterval = 10 * time.Second

// A NodeGroup is a MachineDeployment as the cluster-autoscaler sees it with its provider
// clusterapi: by the selector, by spec.providerID, status.nodeRef, status.phase and
// status.failureMessage of its Machines, by the providerIDs of Nodes, and by the subresource
// scale.
type NodeGroup struct {
	Fleet
	Name string
	// MinSize that no deletion goes below.
	MinSize int32
	// ProvisionTime is --max-node-provision-time: how long a Node may not be registered.
	ProvisionTime time.Duration

	unregistered map[string]time.Time
}

// An Instance of a node group.
type Instance struct {
	// ID is the providerID of the Machine, or a made-up one of a Machine without Node.
	ID, Machine string
	// Failed means that the Machine failed before it had a Node.
	Failed bool
	// Registered means that a Node has the ID, byte for byte.
	Registered bool
}

// Instances of the group, without those that are being deleted.
func (g *NodeGroup) Instances(ctx context.Context) ([]Instance, error) {
	md, err := g.deployment(ctx)
	if err != nil {
		return nil, err
	}
	selector := labels.Set{}
	for k, v := range md.Spec.Selector.MatchLabels {
		selector[k] = string(v)
	}
	machines := &machinev1alpha1.MachineList{}
	if err := g.Client.List(ctx, machines, client.InNamespace(g.Namespace), client.MatchingLabels(selector)); err != nil {
		return nil, err
	}
	nodes := &corev1.NodeList{}
	if err := g.Cluster.Client.List(ctx, nodes); err != nil {
		return nil, err
	}
	registered := map[string]bool{}
	for _, n := range nodes.Items {
		registered[n.Spec.ProviderID] = true
	}
	var out []Instance
	for _, m := range machines.Items {
		if m.DeletionTimestamp != nil {
			continue
		}
		i := Instance{Machine: m.Name, ID: ptr.Deref(m.Spec.ProviderID, "")}
		switch {
		case m.Status.FailureMessage != "" && m.Status.Phase == machinev1alpha1.MachineFailed:
			i.ID, i.Failed = fmt.Sprintf("failed-machine-%s_%s", m.Namespace, m.Name), m.Status.NodeRef == nil
		case i.ID == "":
			i.ID = fmt.Sprintf("pending-machine-%s_%s", m.Namespace, m.Name)
		}
		i.Registered = registered[i.ID]
		out = append(out, i)
	}
	return out, nil
}

// Loop deletes what the autoscaler deletes in one loop: instances that failed, and those that
// are not registered for ProvisionTime. It returns the names of their Machines.
func (g *NodeGroup) Loop(ctx context.Context) ([]string, error) {
	instances, err := g.Instances(ctx)
	if err != nil {
		return nil, err
	}
	unregistered := map[string]time.Time{}
	var deleted []string
	for _, i := range instances {
		switch {
		case i.Registered:
			continue
		case !i.Failed:
			since, ok := g.unregistered[i.ID]
			if !ok {
				since = time.Now()
			}
			unregistered[i.ID] = since
			if time.Since(since) < g.ProvisionTime {
				continue
			}
		}
		done, err := g.delete(ctx, i.Machine)
		if err != nil {
			return deleted, err
		}
		if done {
			deleted = append(deleted, i.Machine)
		}
	}
	g.unregistered = unregistered
	return deleted, nil
}

// delete a Machine: mark it by an update of the whole object, and lower replicas by one.
func (g *NodeGroup) delete(ctx context.Context, name string) (bool, error) {
	replicas, err := g.Size(ctx)
	if err != nil || replicas <= g.MinSize {
		return false, err
	}
	m := &machinev1alpha1.Machine{}
	if err := g.Client.Get(ctx, types.NamespacedName{Namespace: g.Namespace, Name: name}, m); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[machinev1alpha1.AnnotationDeleteMachine] = time.Now().String()
	if err := g.Client.Update(ctx, m); err != nil {
		return false, err
	}
	return true, g.Resize(ctx, replicas-1)
}

// Size is spec.replicas, by the subresource scale.
func (g *NodeGroup) Size(ctx context.Context) (int32, error) {
	s := &autoscalingv1.Scale{}
	err := g.Client.SubResource("scale").Get(ctx, g.object(), s)
	return s.Spec.Replicas, err
}

// Resize the group by a merge patch of the subresource scale.
func (g *NodeGroup) Resize(ctx context.Context, replicas int32) error {
	return g.Client.SubResource("scale").Patch(ctx, g.object(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)),
		client.WithSubResourceBody(&autoscalingv1.Scale{}))
}

func (g *NodeGroup) deployment(ctx context.Context) (*machinev1alpha1.MachineDeployment, error) {
	md := g.object()
	return md, g.Client.Get(ctx, client.ObjectKeyFromObject(md), md)
}

func (g *NodeGroup) object() *machinev1alpha1.MachineDeployment {
	md := &machinev1alpha1.MachineDeployment{}
	md.Namespace, md.Name = g.Namespace, g.Name
	return md
}
