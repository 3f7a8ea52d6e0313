package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Infrastructure composes a Machine's VM: it binds the VM kind of one provider.
//
// All expressions are CEL. Expressions of virtualMachine.fields may use
//
//	machine      the Machine as it is in the API server: machine.metadata, machine.spec
//	class        the MachineClass: class.metadata, class.spec
//	name         the desired name of the VM (string)
//	userData     {secretName, key, value}: the Secret that holds the user data, its key, and the user data itself (string)
//	tags         the desired tags of the VM (map of string to string)
//	failureDomain  the desired failure domain, "" if there is none (string)
//
//	companions   the VM's companions by name: metadata, spec and status of each always
//	             exist, and status is empty until the provider reports one
//
// Expressions of companions[].fields may use the same variables. There, name is the name of the
// companion, and companions has only those before it in the list. Expressions of a companion with
// afterVM may also use vm, the observed VM resource.
//
// Expressions of status may use companions, machine and vm. vm is the observed VM resource, whose
// metadata, spec and status always exist. They may not use class, because the class may be deleted
// before the VM. CEL's optional syntax (vm.status.?atProvider.?id.orValue("")) is enabled, as are
// the string, list, encoder, math, regex and bindings extensions of cel-go and its comprehensions
// over keys and values (tags.transformMap(k, v, v)). Drover adds the functions
//
//	text.fit(allowed, longest)  the text if it has only allowed characters, written as
//	             those between the brackets of a regular expression ("a-z0-9_-"), and
//	             at most longest characters. Otherwise each other character is replaced
//	             by -, and the text is cut and ends with a hash, so that two different
//	             texts never become the same (string)
//	text.terraformLiteral()  the text with ${ and %{ escaped, for providers that run the
//	             Terraform CLI: it evaluates each string of its configuration as a template.
//	             Providers that call a Terraform provider's code in process take strings as
//	             they are, and must not get this (string)
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Infrastructure struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Provider that this binding is for. It must be the provider of the class.
	// +kubebuilder:validation:MinLength=1
	Provider string `json:"provider"`

	// VirtualMachine is how the VM resource is created.
	VirtualMachine VirtualMachineBinding `json:"virtualMachine"`

	// Companions are resources that each VM needs beside it, such as a network interface of its
	// own. They are created in their order: each one when all before it are ready, and the VM when
	// all without afterVM are. They are deleted in the opposite order, after the VM is deleted.
	// Those with afterVM come last in the list. They are created after the VM, and deleted before
	// it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Companions []CompanionBinding `json:"companions,omitempty"`

	// Status is how the VM resource is read.
	Status StatusBinding `json:"status"`

	// Inventory is the kind that lists the VMs of the cloud. An inventory of this kind is used if
	// an OrphanCollector in the namespace crossplane-system has one. Then a VM that is missing in
	// it is lost, and a VM that it lists as stopped or failed is failed, unless its Node is Ready.
	// By default only the VM resource reports the state of the VM.
	// +optional
	Inventory *KindBinding `json:"inventory,omitempty"`

	// NodeCapacity is a CEL expression of the capacity that the class requests from the cloud, in
	// the form of spec.nodeCapacity of a MachineClass: {"capacity": {"cpu": 4, "memory": "16Gi"},
	// "architecture": "amd64"}. It may use only class. Null, an absent optional value, or a map
	// without cpu and memory means that the capacity is unknown. Memory is the memory of the VM:
	// Drover subtracts 7.5 % for the VM's firmware and kernel. Values in spec.nodeCapacity of the
	// class take precedence. The cluster-autoscaler reads the result while there are no Nodes. By
	// default nothing is derived from the class.
	// +optional
	NodeCapacity string `json:"nodeCapacity,omitempty"`
}

// A VirtualMachineBinding is how a VM resource is created: from the class's forProvider, and then
// from the fields, in their order.
type VirtualMachineBinding struct {
	// APIVersion of the VM resource.
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`

	// Kind of the VM resource.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`

	// Package of the provider that has the kind, as "crossplane xpkg install provider" takes it. It is part of the
	// message that the kind is missing.
	// +optional
	Package string `json:"package,omitempty"`

	// Fields that Drover sets.
	// +kubebuilder:validation:MinItems=1
	Fields []FieldBinding `json:"fields"`

	// InstanceTypePath is the path of the field that has the instance type, like spec.forProvider.serverType. It must
	// be below spec.forProvider. The instance type of an entry in spec.instanceTypes of the class is set there, before
	// the fields. By default VMs of the provider have no such field, and each entry of a class must have
	// forProvider.
	// +optional
	InstanceTypePath string `json:"instanceTypePath,omitempty"`

	// Reboot means that the provider reboots the VM when the annotation machine.drover.dev/reboot of the VM resource
	// requests it: once for each value, Soft/ID or Hard/ID, and not before it has recorded the value in the annotation
	// machine.drover.dev/rebooted. It reports a refusal by the condition Rebooted of the VM resource: False, with the
	// value before a colon and a space in the message. The default is false: Machines are not rebooted.
	// +optional
	Reboot bool `json:"reboot,omitempty"`

	// PollInterval is a CEL expression of the interval at which the provider observes the VM at
	// least, as a duration of at least 10s ("1m"). With "" the provider's interval for all
	// resources applies, usually 10 minutes. The expression may use the variables of fields. Use it
	// for VMs that the cloud may reclaim, such as spot VMs: each observation is a request to the
	// cloud. It sets the annotation crossplane.io/poll-interval, which providers with
	// crossplane-runtime v2.3 and later honor.
	// +optional
	PollInterval string `json:"pollInterval,omitempty"`
}

// A CompanionBinding is how a companion of a VM is created: from companions.<name> of the class,
// and then from the fields, in their order. Like a VM, it is not changed any more after its
// creation began.
type CompanionBinding struct {
	// Name of the companion in the class and in expressions. The name of the resource is the VM's
	// name followed by -<name>.
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*$`
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name"`

	// APIVersion of the resource.
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`

	// Kind of the resource.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`

	// Package of the provider that has the kind, as "crossplane xpkg install provider" takes it. It is part of the
	// message that the kind is missing. The default is the package of the VM resource.
	// +optional
	Package string `json:"package,omitempty"`

	// Optional means that a VM has the companion only if its class has it. The default is false.
	// +optional
	Optional bool `json:"optional,omitempty"`

	// AfterVM means that the companion depends on the VM, such as the attachment of a disk. It is
	// created once the VM resource reports the providerID, and its fields may use vm, the observed
	// VM resource. A new Machine runs when all of these companions are ready. They are deleted
	// after the drain and before the VM, which waits at most 5 minutes for that. If a user deletes
	// one, it is created again from the class. Companions with afterVM must come last in the list.
	// The default is false.
	//
	// Before there is a VM, the fields are evaluated to check the class. Then vm has the desired
	// spec and an empty status, so that expressions must not require the status.
	// +optional
	AfterVM bool `json:"afterVM,omitempty"`

	// Fields that Drover sets.
	// +optional
	Fields []FieldBinding `json:"fields,omitempty"`

	// Ready is a CEL expression that is true if the next companions and the VM may be created, or
	// with afterVM if the companion is complete. It may use machine and companion, the observed
	// resource. By default the resource must be Ready.
	// +optional
	Ready string `json:"ready,omitempty"`
}

// A FieldBinding sets one field of a VM resource or of a companion.
type FieldBinding struct {
	// Path of the field, like spec.forProvider.tags or
	// spec.forProvider.metadata[user-data]. It must be below spec.
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`

	// Value is a CEL expression. If it is null or an absent optional value, the field keeps the
	// value of the class. A map is merged over the map of the class. Any other value replaces the
	// value of the class.
	// +kubebuilder:validation:MinLength=1
	Value string `json:"value"`
}

// A StatusBinding is how the status of a VM resource is read.
type StatusBinding struct {
	// ProviderID is a CEL expression of the providerID that the Node will have, byte for byte, and
	// "" while it is unknown.
	// +kubebuilder:validation:MinLength=1
	ProviderID string `json:"providerID"`

	// Addresses is a CEL expression of a list of {type, address}. The types are those of a Node's
	// addresses. Use only addresses and names that the cloud itself assigned to the VM: the serving
	// certificate of the kubelet is approved for them.
	// +optional
	Addresses string `json:"addresses,omitempty"`

	// GuestAddresses is like Addresses, for addresses that the VM's own guest reports, for example
	// through guest tools. A compromised guest can report any address. Users see these addresses,
	// but a serving certificate is approved for an address only if it is in
	// spec.certificates.guestCIDRs of the target cluster's configuration. A name that a guest
	// reports never gets a certificate.
	// +optional
	GuestAddresses string `json:"guestAddresses,omitempty"`

	// Console is a CEL expression of the last part of the VM's console output, "" while it is
	// unknown. It explains why a VM does not join, and no decision depends on it. If it is set and
	// a Machine is late to join, its VM resource gets the annotation
	// machine.drover.dev/read-console, so that its provider can read the console on demand. By
	// default the provider reports no console.
	// +optional
	Console string `json:"console,omitempty"`

	// Running is a CEL expression that is true if the VM runs. By default the VM runs if the VM
	// resource is Ready.
	// +optional
	Running string `json:"running,omitempty"`

	// Error is a CEL expression of the error that prevents, for now, the creation or the run of the
	// VM, and "" if there is none. The default is the message of the VM resource's condition
	// LastAsyncOperation or Synced, if that is False.
	// +optional
	Error string `json:"error,omitempty"`

	// Failed is a CEL expression of a message if the VM failed permanently, and "" otherwise.
	// +optional
	Failed string `json:"failed,omitempty"`

	// Lost is a CEL expression that is true if the VM existed and does not exist any more.
	// Providers that are part of Drover report a loss without it: Ready is False with the reason
	// Missing. Other providers do not report a loss, because they may only observe and delete the
	// VM, and crossplane-runtime reports a loss only of resources that it may do nothing else with.
	// For these, the expression can use only what the resource still shows, such as the state of
	// the VM. Otherwise the loss is detected at the Node: the cloud's controller manager deletes
	// it, or it is not Ready.
	// +optional
	Lost string `json:"lost,omitempty"`

	// ErrorClasses classify the errors of the provider. The first match wins. An error without a
	// match is Transient. While the provider refuses to create a VM, for any reason, the Machine
	// waits and the provider tries again. The class of the error is reported, and controls the
	// reactions of the set: its backoff, and a change of the failure domain.
	// +optional
	ErrorClasses []ErrorClass `json:"errorClasses,omitempty"`
}

// An ErrorCode is a class of errors.
// +kubebuilder:validation:Enum=QuotaExceeded;CapacityExhausted;InvalidRequest;PermissionDenied;ProviderConfigNotFound;Throttled;Transient
type ErrorCode string

// Classes of errors.
const (
	// ErrorQuotaExceeded means that the quota of the account is used up.
	ErrorQuotaExceeded ErrorCode = "QuotaExceeded"
	// ErrorCapacityExhausted means that the cloud has no room in this place at this time.
	ErrorCapacityExhausted ErrorCode = "CapacityExhausted"
	// ErrorInvalidRequest means that the class has a value that does not exist or is not allowed.
	ErrorInvalidRequest ErrorCode = "InvalidRequest"
	// ErrorPermissionDenied means that the credentials are wrong or lack rights.
	ErrorPermissionDenied ErrorCode = "PermissionDenied"
	// ErrorProviderConfigNotFound means that the configuration of the provider, which the class names,
	// does not exist. Drover recognizes it before it tries the ErrorClasses.
	ErrorProviderConfigNotFound ErrorCode = "ProviderConfigNotFound"
	// ErrorThrottled means that there were too many requests.
	ErrorThrottled ErrorCode = "Throttled"
	// ErrorTransient is any other error.
	ErrorTransient ErrorCode = "Transient"
)

// An ErrorClass assigns a class to the errors that match.
type ErrorClass struct {
	// Code of the class.
	Code ErrorCode `json:"code"`

	// Match is a regular expression (RE2) that is searched for in the text of the error.
	// +kubebuilder:validation:MinLength=1
	Match string `json:"match"`
}
