package handover

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// mcmGroup is the API group of the kinds of machine-controller-manager.
	mcmGroup = "machine.sapcloud.io"
	mcmTitle = "machine-controller-manager"

	// labelNode of a Machine has the name of its Node. Without it the controllers do not look at the Node of a Machine.
	labelNode = "node"
	// labelScaleUpDisabled keeps a MachineSet from creating Machines.
	labelScaleUpDisabled = "node.machine.sapcloud.io/scale-up-disabled"
	labelFreezeMCM       = "freeze"
	labelUpdateResult    = "node.machine.sapcloud.io/update-result"
	labelCandidate       = "node.machine.sapcloud.io/candidate-for-update"

	annotationTriggerDeletion = "node.machine.sapcloud.io/trigger-deletion-by-mcm"
	annotationMarked          = "machine.sapcloud.io/marked-for-deletion-time"
	annotationPriority        = "machinepriority.machine.sapcloud.io"
	annotationPreserve        = "node.machine.sapcloud.io/preserve"
	annotationUnmanaged       = "node.machine.sapcloud.io/not-managed-by-mcm"
	annotationScaleDownByMCM  = "cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm"

	taintPreferNoSchedule = "deployment.machine.sapcloud.io/prefer-no-schedule"
	taintPreserved        = "node.machine.sapcloud.io/preserved"
	taintCritical         = "node.gardener.cloud/critical-components-not-ready"

	// finalizerNode keeps a Node until machine-controller-manager deletes it.
	finalizerNode = "node.machine.sapcloud.io/machine-controller"
)

// leasesMCM are the Leases of the two controllers, in the namespace of their Machines. The second one calls the cloud.
var leasesMCM = []string{"machine-controller-manager", "machine-controller"}

// MCM is gardener's machine-controller-manager, whose controllers are stopped. The VM of a Machine is known by the providerID of its
// Node: that of the Machine may be in another form, such as one with the region in place of the zone.
//
// Its Machines stay, without their MachineSet and their Node: its collector of orphans deletes each VM with its tags that has no
// Machine, and leaves alone the one of a Machine with the providerID. So it may be started again for other MachineDeployments.
var MCM System = mcm{}

type mcm struct{}

// mcmRecord is the former state of an object of machine-controller-manager.
type mcmRecord struct {
	// Replicas of a MachineDeployment or MachineSet.
	Replicas *int64 `json:"replicas,omitempty"`
	// APIVersion and Kind of the VM resources, in the record of a MachineDeployment.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	// Node of a Machine, with its providerID and the external name of its VM.
	Node       string `json:"node,omitempty"`
	ProviderID string `json:"providerID,omitempty"`
	External   string `json:"externalName,omitempty"`
	// Finalizer means that the Node had the finalizer of machine-controller-manager.
	Finalizer bool `json:"finalizer,omitempty"`
}

// surroundings have the traces of the controllers of machine-controller-manager.
type surroundings struct {
	// Kind of the VM resources that the Composition of the class has, empty if there is none.
	Kind schema.GroupVersionKind
	Now  time.Time
	// Leases of the controllers in the namespace.
	Leases []coordinationv1.Lease
	// Workloads are Deployments, and Pods of the namespace.
	Workloads []Workload
	// Shoot means that a gardenlet keeps the namespace.
	Shoot bool
	// Confirmed means that the user knows that the controllers are stopped, where no Lease shows it.
	Confirmed bool
}

// A Workload is a Deployment or a Pod.
type Workload struct {
	// Name has its kind, namespace and name.
	Name      string
	Namespace string
	// Why it counts as running, "" if it does not run.
	Why        string
	Containers []corev1.Container
}

func (mcm) group() string { return mcmGroup }

func (mcm) annotation() string { return machinev1alpha1.AnnotationImported }

func (mcm) title() string { return mcmTitle }

func (mcm) vmKind(w *World) schema.GroupVersionKind {
	if from := w.from(); from != nil {
		if r := recordOf(from); r != nil && r.Kind != "" {
			return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
		}
	}
	return w.MCM.Kind
}

// member of a Machine of machine-controller-manager. One that was detached, and has neither a Node nor objects of Drover, had a VM
// that Drover deleted since.
func (s mcm) member(w *World, o *unstructured.Unstructured) (member, bool) {
	m := member{name: o.GetName(), machine: o}
	r := recordOf(o)
	if r != nil {
		m.nodeName, m.provider, m.external = r.Node, r.ProviderID, r.External
	} else if m.nodeName = o.GetLabels()[labelNode]; w.nodeOf(m) != nil {
		m.provider = stringAt(w.nodeOf(m), "spec", "providerID")
		if c := w.cloud(); c != nil {
			m.external = c.externalName(m.provider)
		}
	}
	n, kind := w.nodeOf(m), s.vmKind(w)
	hasNode := n != nil && stringAt(n, "spec", "providerID") == m.provider
	d := w.get(machinev1alpha1.Group, "Machine", m.name)
	hasMachine := d != nil && stringAt(d, "spec", "providerID") == m.provider
	// Drover deletes the VM resource of a Machine before the Machine.
	m.hasVM = hasNode && !hasMachine && m.external != ""
	return m, r == nil || hasNode || hasMachine || w.get(kind.Group, kind.Kind, m.name) != nil
}

// nodeOf returns the Node of the name that a member has, nil if it does not exist.
func (w *World) nodeOf(m member) *unstructured.Unstructured { return w.get("", "Node", m.nodeName) }

// record notes the VM of a Machine before the labels of the Machine lead to it no more.
func (s mcm) record(w *World, o *unstructured.Unstructured, r *record) {
	if o.GroupVersionKind().Group != mcmGroup {
		return
	}
	switch o.GetKind() {
	case "Machine":
		m, _ := s.member(w, o)
		r.Node, r.ProviderID, r.External = m.nodeName, m.provider, m.external
		if n := w.nodeOf(m); n != nil {
			r.Finalizer = hasFinalizer(n, finalizerNode)
		}
	case "MachineDeployment":
		k := w.MCM.Kind
		r.APIVersion, r.Kind = k.GroupVersion().String(), k.Kind
		fallthrough
	default:
		n := intAt(o, "spec", "replicas")
		r.Replicas = &n
	}
}

// detached returns the labels of a Machine of which no MachineSet and no Node is known.
func (mcm) detached(w *World, machine *unstructured.Unstructured) map[string]string {
	return without(w.unselected(machine, ""), labelNode, "")
}

func (mcm) reported(w *World, m member) string {
	for _, c := range clouds {
		if strings.HasPrefix(w.System.vmKind(w).Group, c.name+".") {
			return c.reported(m.vm)
		}
	}
	return ""
}

// theirOwners are the MachineDeployment of the other side and its sets, from the top.
func (w *World) theirOwners() []*unstructured.Unstructured {
	return append([]*unstructured.Unstructured{w.from()}, w.sets()...)
}
