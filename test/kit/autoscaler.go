package kit

import (
	"context"
	"fmt"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// ScanInterval is the default interval at which a cluster-autoscaler checks its node groups.
const ScanInterval = 10 * time.Second

// A NodeGroup is a MachineDeployment as the cluster-autoscaler sees it with its provider
// clusterapi: by the selector, by spec.providerID, status.nodeRef, status.phase and
// status.failureMessage of its Machines, by the providerIDs of Nodes, and by the subresource
// scale.
type NodeGroup struct {
	Fleet
	Name string
	// MinSize is the minimum number of Machines for deletions.
	MinSize int32
	// ProvisionTime is --max-node-provision-time: the time that a Node may take to register.
	ProvisionTime time.Duration
	// As is the client of the autoscaler in the control cluster, with its rights there. If it is
	// nil, the group has the rights of an administrator.
	As client.Client

	unregistered map[string]time.Time
}

// An Instance of a node group.
type Instance struct {
	// ID is the providerID of the Machine, or a generated one for a Machine without a Node.
	ID, Machine string
	// Failed means that the Machine failed before it had a Node.
	Failed bool
	// Registered means that a Node has exactly this ID.
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
	if err := g.control().List(ctx, machines, client.InNamespace(g.Namespace), client.MatchingLabels(selector)); err != nil {
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

// Loop makes the deletions of one autoscaler loop: it deletes failed instances, and instances
// that stay unregistered for ProvisionTime. It returns the names of their Machines.
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

// Delete the Machine of an instance, as the autoscaler does when it no longer needs the Node.
func (g *NodeGroup) Delete(ctx context.Context, machine string) error {
	done, err := g.delete(ctx, machine)
	if err == nil && !done {
		err = fmt.Errorf("the group has its minimum, or the Machine %s is gone", machine)
	}
	return err
}

// delete a Machine: mark it by an update of the whole object, and reduce replicas by one.
func (g *NodeGroup) delete(ctx context.Context, name string) (bool, error) {
	replicas, err := g.Size(ctx)
	if err != nil || replicas <= g.MinSize {
		return false, err
	}
	m := &machinev1alpha1.Machine{}
	if err := g.control().Get(ctx, types.NamespacedName{Namespace: g.Namespace, Name: name}, m); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[machinev1alpha1.AnnotationDeleteMachine] = time.Now().String()
	if err := g.control().Update(ctx, m); err != nil {
		return false, err
	}
	return true, g.Resize(ctx, replicas-1)
}

// Size is spec.replicas, by the subresource scale.
func (g *NodeGroup) Size(ctx context.Context) (int32, error) {
	s := &autoscalingv1.Scale{}
	err := g.control().SubResource("scale").Get(ctx, g.object(), s)
	return s.Spec.Replicas, err
}

// Resize the group by a merge patch of the subresource scale.
func (g *NodeGroup) Resize(ctx context.Context, replicas int32) error {
	return g.control().SubResource("scale").Patch(ctx, g.object(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)),
		client.WithSubResourceBody(&autoscalingv1.Scale{}))
}

func (g *NodeGroup) control() client.Client {
	if g.As != nil {
		return g.As
	}
	return g.Client
}

// Template returns the template of the Nodes of an empty group, as the autoscaler reads it. It
// takes status.capacity and status.nodeInfo of the object that infrastructureRef of the template
// names, whose resource is the kind in lower case with an s. It reads no annotation.
func (g *NodeGroup) Template(ctx context.Context) (*corev1.Node, error) {
	md, err := g.raw(ctx, machinev1alpha1.MachineDeploymentGroupVersionKind, g.Name)
	if err != nil {
		return nil, err
	}
	ref, _, err := unstructured.NestedStringMap(md.Object, "spec", "template", "spec", "infrastructureRef")
	if err != nil {
		return nil, err
	}
	version, err := schema.ParseGroupVersion(ref["apiVersion"])
	if err != nil {
		return nil, err
	}
	kind, err := g.control().RESTMapper().KindFor(version.WithResource(strings.ToLower(ref["kind"]) + "s"))
	if err != nil {
		return nil, err
	}
	// The autoscaler has an informer of the kind.
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := g.control().List(ctx, l); err != nil {
		return nil, err
	}
	o, err := g.raw(ctx, kind, ref["name"])
	if err != nil {
		return nil, err
	}
	capacity, _, err := unstructured.NestedStringMap(o.Object, "status", "capacity")
	if err != nil {
		return nil, err
	}
	n := &corev1.Node{}
	n.Status.Capacity = corev1.ResourceList{}
	for name, value := range capacity {
		q, err := resource.ParseQuantity(value)
		if err != nil {
			return nil, fmt.Errorf("status.capacity[%s]: %w", name, err)
		}
		n.Status.Capacity[corev1.ResourceName(name)] = q
	}
	n.Status.NodeInfo.Architecture, _, _ = unstructured.NestedString(o.Object, "status", "nodeInfo", "architecture")
	n.Status.NodeInfo.OperatingSystem, _, _ = unstructured.NestedString(o.Object, "status", "nodeInfo", "operatingSystem")
	return n, nil
}

// ScaleUp scales up by as many Nodes as pods with these requests need, according to the template.
func (g *NodeGroup) ScaleUp(ctx context.Context, pods int, requests corev1.ResourceList) error {
	n, err := g.Template(ctx)
	if err != nil {
		return err
	}
	fit := int64(-1)
	for name, each := range requests {
		has := n.Status.Capacity[name]
		if fits := has.MilliValue() / each.MilliValue(); fit < 0 || fits < fit {
			fit = fits
		}
	}
	if fit <= 0 {
		return fmt.Errorf("no pod fits on a Node with %v", n.Status.Capacity)
	}
	return g.Resize(ctx, int32((int64(pods)+fit-1)/fit))
}

func (g *NodeGroup) raw(ctx context.Context, kind schema.GroupVersionKind, name string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	return o, g.control().Get(ctx, types.NamespacedName{Namespace: g.Namespace, Name: name}, o)
}

func (g *NodeGroup) deployment(ctx context.Context) (*machinev1alpha1.MachineDeployment, error) {
	md := g.object()
	return md, g.control().Get(ctx, client.ObjectKeyFromObject(md), md)
}

func (g *NodeGroup) object() *machinev1alpha1.MachineDeployment {
	md := &machinev1alpha1.MachineDeployment{}
	md.Namespace, md.Name = g.Namespace, g.Name
	return md
}
