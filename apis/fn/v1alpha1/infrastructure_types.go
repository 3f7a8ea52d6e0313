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
//	name         the name that the VM shall have (string)
//	userData     {secretName, key, value}: the Secret that holds the user data, its key, and the user data itself (string)
//	tags         the tags that the VM shall carry (map of string to string)
//	failureDomain  the wanted failure domain, "" when there is none (string)
//
//	companions   the VM's companions by name: metadata, spec and status of each are
//	             always there, status is empty while nobody has told anything
//
// Those of companions[].fields may use the same, where name is that of the companion,
// and companions are those before it in the list.
//
// Expressions of status may use vm, the observed VM resource, of which metadata,
// spec and status are always there, companions and machine; not class, which may be
// gone when its VM is not. CEL's optional syntax (vm.status.?atProvider.?id.orValue("")) is
// on, as are the string, list, encoder, math, regex and bindings extensions of cel-go and its
// comprehensions over keys and values (tags.transformMap(k, v, v)). Of Drover's own are
//
//	text.fit(allowed, longest)  the text if it has only allowed characters, written as
//	             those between the brackets of a regular expression ("a-z0-9_-"), and
//	             not more than longest; or else with - in place of the others, cut, and
//	             with a hash at its end, so that no two texts become the same (string)
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

	// VirtualMachine says how the VM resource is made.
	VirtualMachine VirtualMachineBinding `json:"virtualMachine"`

	// Companions are resources that each VM needs beside it, such as a network
	// interface of its own. They are composed in their order, each when those before
	// it are ready, and the VM when all are. They are deleted when the VM is gone, in
	// the opposite order.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Companions []CompanionBinding `json:"companions,omitempty"`

	// Status says how the VM resource is read.
	Status StatusBinding `json:"status"`

	// Inventory is the kind that lists the VMs of the cloud. If an OrphanCollector with the
	// namespace crossplane-system has one of the kind, a VM that it misses is lost, and a VM that
	// it sees stopped or failed is failed, unless its Node is Ready. The default is that only the
	// VM resource tells.
	// +optional
	Inventory *KindBinding `json:"inventory,omitempty"`

	// NodeCapacity is a CEL expression of what the class asks of the cloud, in the form of
	// spec.nodeCapacity of a MachineClass: {"capacity": {"cpu": 4, "memory": "16Gi"},
	// "architecture": "amd64"}. It may use class alone. Null, an absent optional value, or a
	// map without cpu and memory means that it is not known. Memory is that of the VM: Drover
	// takes 7.5 % off for what the VM's firmware and kernel keep. What the class itself
	// has in spec.nodeCapacity wins. The cluster-autoscaler is told of it before there are
	// Nodes. The default is that nothing is derived from the class.
	// +optional
	NodeCapacity string `json:"nodeCapacity,omitempty"`
}

// A VirtualMachineBinding says how a VM resource is made: from the class's
// forProvider, and then from the fields, in their order.
type VirtualMachineBinding struct {
	// APIVersion of the VM resource.
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`

	// Kind of the VM resource.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`

	// Fields that Drover sets.
	// +kubebuilder:validation:MinItems=1
	Fields []FieldBinding `json:"fields"`

	// PollInterval is a CEL expression of how often the provider looks at the VM at least, as a
	// duration of at least 10s ("1m"), "" for as often as it looks at all resources, which is
	// each 10 minutes as a rule. It may use what the fields may. Use it for VMs that the cloud
	// may take back: each look is a request to the cloud. It is the annotation
	// crossplane.io/poll-interval, which providers with crossplane-runtime v2.3 and later
	// honor.
	// +optional
	PollInterval string `json:"pollInterval,omitempty"`
}

// A CompanionBinding says how a companion of a VM is made: from companions.<name> of the
// class, and then from the fields, in their order. What holds for a VM holds for it:
// once its creation began it stays as it was asked for.
type CompanionBinding struct {
	// Name of the companion in the class and in expressions. The resource has the
	// VM's name with -<name> after it.
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*$`
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name"`

	// APIVersion of the resource.
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`

	// Kind of the resource.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`

	// Optional means that only VMs have it whose class does.
	// +optional
	Optional bool `json:"optional,omitempty"`

	// Fields that Drover sets.
	// +optional
	Fields []FieldBinding `json:"fields,omitempty"`

	// Ready is a CEL expression that is true when what comes after the companion may
	// be created. It may use companion, the observed resource, and machine. The default
	// is that the resource is Ready.
	// +optional
	Ready string `json:"ready,omitempty"`
}

// A FieldBinding sets one field of a VM resource, or of a companion.
type FieldBinding struct {
	// Path of the field, like spec.forProvider.tags or
	// spec.forProvider.metadata[user-data]. It must be below spec.
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`

	// Value is a CEL expression. A null or absent optional value leaves the
	// field as the class has it. A map is merged over the map that the class
	// has; anything else takes the place of what the class has.
	// +kubebuilder:validation:MinLength=1
	Value string `json:"value"`
}

// A StatusBinding says how the status of a VM resource is read.
type StatusBinding struct {
	// ProviderID is a CEL expression of the providerID that the Node will have,
	// byte for byte; "" while it is not known.
	// +kubebuilder:validation:MinLength=1
	ProviderID string `json:"providerID"`

	// Addresses is a CEL expression of a list of {type, address}. Types are those
	// of a Node's addresses. Only addresses and names that the cloud itself assigned
	// to the VM belong here: the serving certificate of the kubelet is approved for them.
	// +optional
	Addresses string `json:"addresses,omitempty"`

	// GuestAddresses is like Addresses, for what the VM's own guest reports, for example
	// through guest tools. A compromised guest can report any address. Users see these
	// addresses, and a serving certificate is approved for those only that are in
	// spec.certificates.guestCIDRs of the target cluster's configuration. A name that
	// a guest reports never gets a certificate.
	// +optional
	GuestAddresses string `json:"guestAddresses,omitempty"`

	// Console is a CEL expression of the end of what the VM wrote to its console, "" while
	// it is not known. It explains why a VM does not join, and decides nothing. With it, a VM
	// resource whose Machine is late to join gets the annotation
	// machine.drover.dev/read-console, by which its provider can read the console on demand.
	// The default is that the provider does not report a console.
	// +optional
	Console string `json:"console,omitempty"`

	// Running is a CEL expression that is true when the VM runs. The default is
	// that the VM resource is Ready.
	// +optional
	Running string `json:"running,omitempty"`

	// Error is a CEL expression of what keeps the VM from being created or from
	// running, for now, and "" when nothing does. The default is the message of the
	// VM resource's condition LastAsyncOperation or Synced, if that is False.
	// +optional
	Error string `json:"error,omitempty"`

	// Failed is a CEL expression of a message when the VM failed for good, and ""
	// otherwise.
	// +optional
	Failed string `json:"failed,omitempty"`

	// Lost is a CEL expression that is true when the VM was there and is gone. It adds
	// to what providers say that Drover lifts or wrote: Ready is False with
	// the reason Missing. Those of others pass over a VM that is gone, because they
	// may look at it and delete it and no more (crossplane-runtime reports a loss only
	// of what it may do nothing else with): what they still show of it, its state for
	// example, is all that there is to go by. Beyond that the loss is seen at the
	// Node, which the cloud's controller manager deletes, or which is not Ready.
	// +optional
	Lost string `json:"lost,omitempty"`

	// ErrorClasses classify the errors of the provider. The first that matches
	// wins; an error that none matches is transient. As long as the provider refuses
	// to create a VM, for whatever reason, the Machine waits, and the provider tries
	// again; the class says what is told, and what comes of it elsewhere.
	// +optional
	ErrorClasses []ErrorClass `json:"errorClasses,omitempty"`
}

// An ErrorCode is a class of errors.
// +kubebuilder:validation:Enum=QuotaExceeded;CapacityExhausted;InvalidRequest;PermissionDenied;Throttled;Transient
type ErrorCode string

// Classes of errors.
const (
	// ErrorQuotaExceeded means that the account may have no more.
	ErrorQuotaExceeded ErrorCode = "QuotaExceeded"
	// ErrorCapacityExhausted means that the cloud has no more, here and now.
	ErrorCapacityExhausted ErrorCode = "CapacityExhausted"
	// ErrorInvalidRequest means that the class asks for what there is not.
	ErrorInvalidRequest ErrorCode = "InvalidRequest"
	// ErrorPermissionDenied means that the credentials are wrong or too weak.
	ErrorPermissionDenied ErrorCode = "PermissionDenied"
	// ErrorThrottled means that there were too many requests.
	ErrorThrottled ErrorCode = "Throttled"
	// ErrorTransient is all else.
	ErrorTransient ErrorCode = "Transient"
)

// An ErrorClass gives a class to errors.
type ErrorClass struct {
	// Code of the class.
	Code ErrorCode `json:"code"`

	// Match is a regular expression (RE2) that is looked for in the error's text.
	// +kubebuilder:validation:MinLength=1
	Match string `json:"match"`
}
