package v1alpha1

import "fmt"

// IsCluster reports whether the reference names a ClusterMachineClass.
func (r ClassReference) IsCluster() bool { return r.Kind == ClusterMachineClassGroupVersionKind.Kind }

// Equal reports whether two references name the same class. Objects that were stored before
// there was a kind, or that no API server has defaulted, have none: a MachineClass is meant.
func (r ClassReference) Equal(other ClassReference) bool { return r.Key() == other.Key() }

// Key identifies a class: the name of a MachineClass, which has no slash, or ClusterMachineClass/
// and the name. It is an input of hashes, which must not change for a MachineClass.
func (r ClassReference) Key() string {
	if r.IsCluster() {
		return r.Kind + "/" + r.Name
	}
	return r.Name
}

// Rolling is the reference as hashes of templates have it: without the kind that is the default.
func (r ClassReference) Rolling() ClassReference {
	if !r.IsCluster() {
		r.Kind = ""
	}
	return r
}

// String has the kind and the name, as messages have them.
func (r ClassReference) String() string {
	kind := MachineClassGroupVersionKind.Kind
	if r.IsCluster() {
		kind = r.Kind
	}
	return fmt.Sprintf("%s %q", kind, r.Name)
}

// Reference to the class.
func (c *MachineClass) Reference() ClassReference {
	r := ClassReference{Kind: MachineClassGroupVersionKind.Kind, Name: c.Name}
	if c.Kind == ClusterMachineClassGroupVersionKind.Kind {
		r.Kind = c.Kind
	}
	return r
}
