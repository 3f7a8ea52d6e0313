// Package workernode has the desired and the observed state of the Node of a Machine, which the step lifecycle
// and the Machine's controller exchange through the pipeline's context.
package workernode

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A WorkerNode is the Node of a Machine in the cluster that the Machine joins. It is no
// API object: the step lifecycle decides on Parameters, and the Machine's controller
// carries them out and reports an Observation.
type WorkerNode struct {
	// Parameters that the step lifecycle decided on.
	Parameters Parameters `json:"parameters"`
	// Observation of the Node.
	Observation Observation `json:"observation,omitzero"`
}

// Parameters are the desired state of the Node of a Machine.
type Parameters struct {
	// ProviderID of the VM, empty while it is not known. A Node without one is given it.
	ProviderID string `json:"providerID,omitempty"`

	// Addresses of the VM, as its cloud and its guest report them. The serving certificate of the Node's kubelet
	// is approved only for these, and for the Node's name.
	Addresses []Address `json:"addresses,omitempty"`

	// CloudNamesNodes means that the cloud decides on the Node's name. Otherwise only a
	// Node with the Machine's own Node name is the Machine's.
	CloudNamesNodes bool `json:"cloudNamesNodes,omitempty"`

	// Labels kept on the Node. A label that is removed here is removed from the Node. If the Node had the label
	// before, it gets its former value instead.
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations kept on the Node, as Labels are.
	Annotations map[string]string `json:"annotations,omitempty"`

	// Taints kept on the Node, as Labels are.
	Taints []Taint `json:"taints,omitempty"`

	// StartupTaints that another controller removes when the Node is ready for pods. The remaining ones are in the
	// observation.
	StartupTaints []Taint `json:"startupTaints,omitempty"`

	// Drained requests that the Node is cordoned and emptied although it stays. The timeout starts with the
	// request. When Drained becomes false, the Node is uncordoned if it was cordoned for this.
	Drained bool `json:"drained,omitempty"`

	// Drain of the Node.
	Drain Drain `json:"drain,omitzero"`
}

// A Taint is a taint that is kept on a Node.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Drain is how the Node is emptied when its Machine is deleted, or when Drained is requested. The timeout
// starts with the deletion, with the end of the wait for hooks, or with the request for Drained.
type Drain struct {
	machinev1alpha1.Drain `json:",inline"`

	// Skip the drain: the Node is deleted with its pods.
	Skip bool `json:"skip,omitempty"`
	// Force the drain: the remaining pods are deleted without regard to their budgets.
	Force bool `json:"force,omitempty"`
}

// A Condition is a condition of a Node, without its heartbeat.
type Condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	// Message of a kubelet that is not Ready, without times: a message that changes with each
	// heartbeat would be a write each time.
	Message string `json:"message,omitempty"`
	// Since is when Drover first observed the status, by the clock of Drover: the times in a Node are those of its
	// kubelet, whose clock may be wrong. For Ready, all statuses but True count as one. It is nil if it is not known.
	Since *metav1.Time `json:"since,omitempty"`
}

// An Address is an address of a Node or of its VM.
type Address struct {
	Type    string `json:"type"`
	Address string `json:"address"`
	// Guest means that the guest of the VM reports the address, and the cloud does not
	// attest it.
	Guest bool `json:"guest,omitempty"`
}

// Info is the system of a Node, as the Node reports it.
type Info struct {
	KubeletVersion          string `json:"kubeletVersion,omitempty"`
	OSImage                 string `json:"osImage,omitempty"`
	KernelVersion           string `json:"kernelVersion,omitempty"`
	ContainerRuntimeVersion string `json:"containerRuntimeVersion,omitempty"`
	Architecture            string `json:"architecture,omitempty"`
	OperatingSystem         string `json:"operatingSystem,omitempty"`
}

// An Observation is the observed state of the Node of a Machine.
type Observation struct {
	// Present means that the Node is in the target cluster, as far as that can be read.
	Present bool `json:"present,omitempty"`
	// Error is why the Node cannot be observed or kept in sync now, empty if it can. The other fields are then as
	// observed last.
	Error string `json:"error,omitempty"`

	// NodeName is the name of the Node, once it joined.
	NodeName string `json:"nodeName,omitempty"`
	// NodeUID is the UID of the Node. If a Node was deleted and created again with the same name, it is another
	// one.
	NodeUID types.UID `json:"nodeUID,omitempty"`
	// Created is when the Node registered.
	Created *metav1.Time `json:"created,omitempty"`
	// HasProviderID means that the Node has the providerID of the parameters.
	HasProviderID bool `json:"hasProviderID,omitempty"`
	// Addresses of the Node.
	Addresses []Address `json:"addresses,omitempty"`
	// NodeInfo is the system of the Node, as the Node reports it.
	NodeInfo *Info `json:"nodeInfo,omitempty"`
	// BootID of the system of the Node, as the Node reports it: another one after each boot.
	BootID string `json:"bootID,omitempty"`
	// Conditions of the Node. Heartbeats are left out.
	Conditions []Condition `json:"conditions,omitempty"`

	// Devices that the Node offers to pods, by its allocatable: nil if that is not known.
	Devices machinev1alpha1.Devices `json:"devices,omitzero"`

	// Join is the progress of the join.
	Join Join `json:"join,omitzero"`

	// Labels of the Node whose keys are in machine.drover.dev or drover.dev, without those that Drover set.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the Node, as Labels are.
	Annotations map[string]string `json:"annotations,omitempty"`

	// StartupTaints that are still there, as key:effect, including the one that the kubelet registers with until
	// the parameters are on the Node.
	StartupTaints []string `json:"startupTaints,omitempty"`

	// Synced means that the Node has all of the parameters.
	Synced bool `json:"synced,omitempty"`

	// Drained means that the Node was cordoned and emptied, as the parameters request.
	Drained bool `json:"drained,omitempty"`
	// Drain of the Node, while there is one.
	Drain *machinev1alpha1.DrainStatus `json:"drain,omitempty"`
}

// Join is the progress of a VM's join, from the objects in the target cluster besides its Node.
type Join struct {
	// CertificateRequested is when the first request with the join token was made, and
	// CertificateApproved when one was approved.
	CertificateRequested *metav1.Time `json:"certificateRequested,omitempty"`
	CertificateApproved  *metav1.Time `json:"certificateApproved,omitempty"`
	// Unproven describes a Node that has the name of the Machine's Node and is not proven to be
	// it, empty if there is none. It registered at UnprovenSince.
	Unproven      string       `json:"unproven,omitempty"`
	UnprovenSince *metav1.Time `json:"unprovenSince,omitempty"`
}
