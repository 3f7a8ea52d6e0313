// Package view holds the objects that kubectl drover reads: plain data that the package collect fills,
// and that all other packages of kubectl drover decide by. A view can be saved as YAML and read again.
package view

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

// Kinds of the objects that commands name.
const (
	NodePool          = "NodePool"
	MachineDeployment = "MachineDeployment"
	MachineSet        = "MachineSet"
	Machine           = "Machine"
)

// A View has the objects of one namespace or of all, as they were read.
type View struct {
	// Time when it was read.
	Time metav1.Time `json:"time"`

	Pools       []machinev1alpha1.NodePool          `json:"pools,omitempty"`
	Deployments []machinev1alpha1.MachineDeployment `json:"deployments,omitempty"`
	Sets        []machinev1alpha1.MachineSet        `json:"sets,omitempty"`
	Machines    []machinev1alpha1.Machine           `json:"machines,omitempty"`
	// Resources that the Machines name in status.resourceRefs.
	Resources []Resource `json:"resources,omitempty"`
	// Configs are the configurations of target clusters that the Machines and the templates name.
	Configs []Config `json:"configs,omitempty"`
	// Events of all these objects.
	Events []corev1.Event `json:"events,omitempty"`
	// Target has the objects of the target cluster, nil if it was not read.
	Target *Target `json:"target,omitempty"`
	// Unread lists the kinds that could not be read, and why. The rest is correct without them.
	Unread []string `json:"unread,omitempty"`
}

// A Resource of a Machine: its VM, a companion, or the Secret with its user data, of which only the
// metadata is read.
type Resource struct {
	Role       string `json:"role"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	// Machine that names the resource.
	Machine string `json:"machine"`
	// Missing means that the resource does not exist.
	Missing      bool               `json:"missing,omitempty"`
	Created      metav1.Time        `json:"created,omitempty,omitzero"`
	Deleted      *metav1.Time       `json:"deleted,omitempty"`
	ExternalName string             `json:"externalName,omitempty"`
	Annotations  map[string]string  `json:"annotations,omitempty"`
	Conditions   []metav1.Condition `json:"conditions,omitempty"`
	// Console is the end of the console of the VM, if its kind reports it.
	Console string `json:"console,omitempty"`
	// InfraMachine is the object of Cluster API that the VM is made from, or the BootstrapConfig that its user data is made
	// from. It is nil if there is none.
	InfraMachine *InfraMachine `json:"infraMachine,omitempty"`
}

// An InfraMachine is the object of a provider of Cluster API that a VM or its user data is made from, as its resource
// reports it.
type InfraMachine struct {
	Kind       string             `json:"kind"`
	Namespace  string             `json:"namespace"`
	Name       string             `json:"name"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A Config is a configuration of a target cluster.
type Config struct {
	Kind       string             `json:"kind"`
	Namespace  string             `json:"namespace,omitempty"`
	Name       string             `json:"name"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Missing means that it does not exist.
	Missing bool `json:"missing,omitempty"`
	// IsControl means that it is the cluster that was read: its source is InjectedIdentity.
	IsControl bool `json:"isControl,omitempty"`
}

// A Target has the objects of a target cluster, as they were read.
type Target struct {
	Nodes []corev1.Node `json:"nodes,omitempty"`
	CSRs  []CSR         `json:"csrs,omitempty"`
	// NodesUnread means that the Nodes could not be read.
	NodesUnread bool `json:"nodesUnread,omitempty"`
	// NodeClaims that Machines were made for. They are nil if they were not read.
	NodeClaims []NodeClaim `json:"nodeClaims"`
	// Pods and Budgets are read for a plan alone.
	Pods    []corev1.Pod                   `json:"pods,omitempty"`
	Budgets []policyv1.PodDisruptionBudget `json:"budgets,omitempty"`
}

// A CSR is a certificate request of a kubelet, without the request itself.
type CSR struct {
	Name string `json:"name"`
	// Node that the certificate is for, as the requester claims.
	Node       string                                              `json:"node"`
	Signer     string                                              `json:"signer"`
	Created    metav1.Time                                         `json:"created"`
	Conditions []certificatesv1.CertificateSigningRequestCondition `json:"conditions,omitempty"`
}

// A Ref names an object.
type Ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is the object as kubectl takes it.
func (r Ref) String() string {
	short := map[string]string{NodePool: "np", MachineDeployment: "md", MachineSet: "ms", Machine: "ma"}
	return cmp.Or(short[r.Kind], r.Kind) + "/" + r.Name
}

// NotFound is the error for an object that a view does not have.
func NotFound(ref Ref) error {
	return fmt.Errorf("%s %q not found in namespace %q", ref.Kind, ref.Name, ref.Namespace)
}

// controllerOf an object of a kind, "" if it has none.
func controllerOf(o metav1.Object, kind string) string {
	if by := metav1.GetControllerOf(o); by != nil && by.Kind == kind {
		return by.Name
	}
	return ""
}

// DeploymentsOf a NodePool, by name.
func (v *View) DeploymentsOf(p *machinev1alpha1.NodePool) []*machinev1alpha1.MachineDeployment {
	var out []*machinev1alpha1.MachineDeployment
	for i := range v.Deployments {
		d := &v.Deployments[i]
		if d.Namespace == p.Namespace && controllerOf(d, NodePool) == p.Name {
			out = append(out, d)
		}
	}
	return out
}

// SetsOf a MachineDeployment, by name.
func (v *View) SetsOf(d *machinev1alpha1.MachineDeployment) []*machinev1alpha1.MachineSet {
	var out []*machinev1alpha1.MachineSet
	for i := range v.Sets {
		s := &v.Sets[i]
		if s.Namespace == d.Namespace && controllerOf(s, MachineDeployment) == d.Name {
			out = append(out, s)
		}
	}
	return out
}

// MachinesOf a MachineSet, oldest first.
func (v *View) MachinesOf(s *machinev1alpha1.MachineSet) []*machinev1alpha1.Machine {
	var out []*machinev1alpha1.Machine
	for i := range v.Machines {
		m := &v.Machines[i]
		if m.Namespace == s.Namespace && controllerOf(m, MachineSet) == s.Name {
			out = append(out, m)
		}
	}
	sortMachines(out)
	return out
}

// LoneMachines have no MachineSet in the view.
func (v *View) LoneMachines() []*machinev1alpha1.Machine {
	var out []*machinev1alpha1.Machine
	for i := range v.Machines {
		m := &v.Machines[i]
		if v.Set(m.Namespace, controllerOf(m, MachineSet)) == nil {
			out = append(out, m)
		}
	}
	sortMachines(out)
	return out
}

// LoneSets have no MachineDeployment in the view.
func (v *View) LoneSets() []*machinev1alpha1.MachineSet {
	var out []*machinev1alpha1.MachineSet
	for i := range v.Sets {
		if s := &v.Sets[i]; v.Deployment(s.Namespace, controllerOf(s, MachineDeployment)) == nil {
			out = append(out, s)
		}
	}
	return out
}

// LoneDeployments have no NodePool in the view.
func (v *View) LoneDeployments() []*machinev1alpha1.MachineDeployment {
	var out []*machinev1alpha1.MachineDeployment
	for i := range v.Deployments {
		if d := &v.Deployments[i]; v.Pool(d.Namespace, controllerOf(d, NodePool)) == nil {
			out = append(out, d)
		}
	}
	return out
}

func sortMachines(machines []*machinev1alpha1.Machine) {
	slices.SortFunc(machines, func(a, b *machinev1alpha1.Machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// Pool of the name, nil if it is not in the view.
func (v *View) Pool(namespace, name string) *machinev1alpha1.NodePool {
	return find(v.Pools, namespace, name, func(o *machinev1alpha1.NodePool) metav1.Object { return o })
}

// Deployment of the name, nil if it is not in the view.
func (v *View) Deployment(namespace, name string) *machinev1alpha1.MachineDeployment {
	return find(v.Deployments, namespace, name, func(o *machinev1alpha1.MachineDeployment) metav1.Object { return o })
}

// Set of the name, nil if it is not in the view.
func (v *View) Set(namespace, name string) *machinev1alpha1.MachineSet {
	return find(v.Sets, namespace, name, func(o *machinev1alpha1.MachineSet) metav1.Object { return o })
}

// Machine of the name, nil if it is not in the view.
func (v *View) Machine(namespace, name string) *machinev1alpha1.Machine {
	return find(v.Machines, namespace, name, func(o *machinev1alpha1.Machine) metav1.Object { return o })
}

func find[T any](all []T, namespace, name string, object func(*T) metav1.Object) *T {
	for i := range all {
		if o := object(&all[i]); o.GetNamespace() == namespace && o.GetName() == name {
			return &all[i]
		}
	}
	return nil
}

// VMOf a Machine, nil if it was not read.
func (v *View) VMOf(m *machinev1alpha1.Machine) *Resource {
	for i := range v.Resources {
		if r := &v.Resources[i]; r.Namespace == m.Namespace && r.Machine == m.Name && r.Role == machinev1alpha1.ResourceVM {
			return r
		}
	}
	return nil
}

// ConfigOf a clusterRef in a namespace, nil if it was not read.
func (v *View) ConfigOf(namespace string, ref machinev1alpha1.ClusterReference) *Config {
	kind, name := ClusterRef(ref)
	for i := range v.Configs {
		c := &v.Configs[i]
		if c.Kind == kind && c.Name == name && (kind != "ProviderConfig" || c.Namespace == namespace) {
			return c
		}
	}
	return nil
}

// ClusterRef returns the kind and the name of a clusterRef, with the defaults of the schema.
func ClusterRef(ref machinev1alpha1.ClusterReference) (kind, name string) {
	return cmp.Or(ref.Kind, "ClusterProviderConfig"), cmp.Or(ref.Name, "default")
}

// EventsOf an object, oldest first.
func (v *View) EventsOf(ref Ref) []corev1.Event {
	var out []corev1.Event
	for _, e := range v.Events {
		if o := e.InvolvedObject; o.Kind == ref.Kind && o.Name == ref.Name && (ref.Namespace == "" || o.Namespace == ref.Namespace) {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b corev1.Event) int { return EventTime(a).Compare(EventTime(b)) })
	return out
}

// EventTime is when an event was seen last.
func EventTime(e corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// NodeOf a Machine, nil if it was not read or does not exist. Without a nodeRef it is the Node of the
// Machine's name: such a Node is shown, and not taken for proven.
func (v *View) NodeOf(m *machinev1alpha1.Machine) *corev1.Node {
	if v.Target == nil {
		return nil
	}
	for i := range v.Target.Nodes {
		if v.Target.Nodes[i].Name == nodeName(m) {
			return &v.Target.Nodes[i]
		}
	}
	return nil
}

// nodeName of a Machine: that of the Node that joined, or else the one that Drover gives the VM.
func nodeName(m *machinev1alpha1.Machine) string {
	if m.Status.NodeRef != nil {
		return m.Status.NodeRef.Name
	}
	return names.OfMachine(m.Name, m.UID)
}

// CSRsOf the kubelet of a Machine, oldest first.
func (v *View) CSRsOf(m *machinev1alpha1.Machine) []CSR {
	if v.Target == nil {
		return nil
	}
	var out []CSR
	for _, r := range v.Target.CSRs {
		if r.Node == nodeName(m) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b CSR) int { return a.Created.Compare(b.Created.Time) })
	return out
}

// ConditionText is a condition without its message, as users read it: the reason is left out if it repeats the type.
func ConditionText(c metav1.Condition) string {
	text := fmt.Sprintf("%s=%s", c.Type, c.Status)
	if c.Reason != c.Type {
		text += " " + c.Reason
	}
	return text
}

// Is returns the condition if it has the status, nil otherwise.
func Is(conditions []metav1.Condition, typ string, status metav1.ConditionStatus) *metav1.Condition {
	if c := meta.FindStatusCondition(conditions, typ); c != nil && c.Status == status {
		return c
	}
	return nil
}
