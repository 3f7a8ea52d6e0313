// Package identity returns the UID and names by which the VM and the Node of a Machine are known. A Machine
// that created its VM is known by its own UID. A Machine that took over a VM is known by the UID of the Machine
// that the VM was created for: the Node registered with that UID, and its name contains it.
//
// The identity of a Machine that took over a VM is in its status. A status can be forged, so that it counts
// only after the controller of the Machine has compared it with the VM resource that the Machine controls.
package identity

import (
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

// UID returns the UID that the Node of a Machine registers with, as the identity of the join token.
func UID(m *machinev1alpha1.Machine) types.UID {
	if id := m.Status.Identity; id != nil {
		return id.UID
	}
	return m.GetUID()
}

// Own returns the identity of a Machine that created its VM.
func Own(m *machinev1alpha1.Machine) machinev1alpha1.MachineIdentity {
	return machinev1alpha1.MachineIdentity{UID: m.GetUID(), NodeName: names.OfMachine(m.GetName(), m.GetUID())}
}

// IsImported reports whether the VM of a Machine was not made by Drover, so that its kubelet may
// have registered without an identity.
func IsImported(m *machinev1alpha1.Machine) bool {
	id := m.Status.Identity
	return id != nil && id.UID == m.GetUID()
}

// NodeName returns the name that the VM of a Machine was given. A cloud that names Nodes may give another one.
func NodeName(m *machinev1alpha1.Machine) string {
	if id := m.Status.Identity; id != nil {
		return id.NodeName
	}
	return Own(m).NodeName
}

// TokenID returns the public half of the join token of a Machine.
func TokenID(m *machinev1alpha1.Machine) string { return names.TokenID(UID(m)) }

// Without returns the Machine without the identity that its status claims.
func Without(m *machinev1alpha1.Machine) *machinev1alpha1.Machine {
	if m.Status.Identity == nil {
		return m
	}
	out := *m
	out.Status.Identity = nil
	return &out
}
