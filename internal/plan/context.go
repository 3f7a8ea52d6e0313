// Package plan holds the values that planners share. The packages below it are the planners.
// Each is a pure function of a view and the time: it knows no protocol, client or clock.
package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/console"
	"github.com/drover-dev/drover/internal/workernode"
)

// Safety is what the safety step says.
type Safety struct {
	// Frozen means that nothing may be created or replaced.
	Frozen bool `json:"frozen"`
	// Reason of the freeze: one word in CamelCase.
	Reason string `json:"reason,omitempty"`
	// Message for people.
	Message string `json:"message,omitempty"`
	// Sets is the value of the label machine.drover.dev/freeze that the sets of a
	// MachineDeployment get, empty for none: sets see for themselves whether they
	// reach their cluster.
	Sets string `json:"sets,omitempty"`
}

// TokenSlack is the difference between the total life of a join token and the creation timeout
// of its Machine: the time for which a VM's creation may be delayed after the token was minted.
const TokenSlack = time.Hour

// A JoinRequest is the join token and the user data that a Machine needs. The Machine's
// controller carries it out.
type JoinRequest struct {
	// UserData is a template with placeholders for what only the controller knows. It is empty
	// if OwnUserData takes its place, which only the controller reads.
	UserData    string       `json:"userData,omitempty"`
	OwnUserData *OwnUserData `json:"ownUserData,omitempty"`
	// Encoding of the user data in its Secret.
	Encoding clusterv1alpha1.UserDataEncoding `json:"encoding,omitempty"`
	// MaxBytes of the user data, compressed if the encoding does that, before base64. 0 is
	// no limit.
	MaxBytes int `json:"maxBytes,omitempty"`
	// TTL of one lease of the token, at least one minute.
	TTL metav1.Duration `json:"ttl"`
	// MaxLife of the token, renewals included: the creation timeout and TokenSlack.
	MaxLife metav1.Duration `json:"maxLife"`
	// Groups that the token authenticates as, beside system:bootstrappers.
	Groups []string `json:"groups,omitempty"`
	// Revoked means that no token is wanted any more.
	Revoked bool `json:"revoked,omitempty"`
	// Frozen means that a VM may have been made from the user data: it must not change.
	Frozen bool `json:"frozen,omitempty"`
}

// Template identifies what the user data is filled from.
func (r JoinRequest) Template() string {
	if o := r.OwnUserData; o != nil {
		return fmt.Sprintf("Secret %s, key %q, format %s", o.SecretName, o.Key, o.Format)
	}
	return r.UserData
}

// OwnUserData is user data that Drover does not write: a Secret.
type OwnUserData struct {
	SecretName string `json:"secretName"`
	// SecretNamespace is set for a ClusterMachineClass. Otherwise it is that of the Machine.
	SecretNamespace string `json:"secretNamespace,omitempty"`
	// Key of the Secret, empty for the default.
	Key string `json:"key,omitempty"`
	// Format that the class wants, empty for any.
	Format machinev1alpha1.ProvisioningFormat `json:"format,omitempty"`
}

// A JoinState is what is known of a Machine's join token and user data.
type JoinState struct {
	// Published means that the Secret with the user data exists, filled from the template
	// with the Hash.
	Published bool   `json:"published,omitempty"`
	Hash      string `json:"hash,omitempty"`
	// Error is why the token or the Secret could not be made, empty if there is none.
	Error string `json:"error,omitempty"`
	// Problem for which no token is made until a user fixes it, nil if there is none.
	Problem *Problem `json:"problem,omitempty"`
}

// Bootstrap is what the bootstrap step says.
type Bootstrap struct {
	// Join is what the Machine needs to join, nil if nothing is known of that yet.
	Join *JoinRequest `json:"join,omitempty"`
	// SecretName and Key of the user data, once there is any.
	SecretName string `json:"secretName,omitempty"`
	Key        string `json:"key,omitempty"`
	// Problem with the input, which keeps the Machine Pending.
	Problem *Problem `json:"problem,omitempty"`
	// Waiting says what the user data waits for.
	Waiting string `json:"waiting,omitempty"`
}

// A Problem is bad input, or something missing, that a user can mend.
type Problem struct {
	// Reason is one word in CamelCase.
	Reason string `json:"reason"`
	// Message names the field, the value and what is allowed.
	Message string `json:"message"`
}

// A VMState says how far a VM is.
type VMState string

// States of a VM.
const (
	// VMAbsent means that there is no VM resource yet.
	VMAbsent VMState = "Absent"
	// VMCreating means that the provider is at it.
	VMCreating VMState = "Creating"
	// VMRunning means that the VM runs.
	VMRunning VMState = "Running"
	// VMFailed means that the VM failed for good.
	VMFailed VMState = "Failed"
	// VMLost means that the VM was there and is gone.
	VMLost VMState = "Lost"
	// VMCreateUnknown means that nobody knows whether the VM was created.
	VMCreateUnknown VMState = "CreateUnknown"
)

// A Console is what a VM shows on its console. The guest writes it: it informs users, and decides
// nothing.
type Console struct {
	// Excerpt of the text, as [console.Excerpt] makes it. It is empty while nothing is known.
	Excerpt string `json:"excerpt,omitempty"`
	// Step of the bootstrap that was reported last, nil if there is none.
	Step *console.Step `json:"step,omitempty"`
	// Refusal is the line in which cloud-init or Ignition reports that it cannot read or apply the
	// user data. It is empty if there is none.
	Refusal string `json:"refusal,omitempty"`
}

// States that an inventory reports of a VM.
const (
	// InventoryMissing means that the cloud does not have the VM any more.
	InventoryMissing = "Missing"
	// InventoryStopped means that the VM is powered off.
	InventoryStopped = "Stopped"
	// InventoryFailed means that the VM could not be created and never runs.
	InventoryFailed = "Failed"
)

// An InventoryReport is what two looks of an inventory confirmed about a Machine's VM.
type InventoryReport struct {
	// Inventory that reports it, by kind, namespace and name.
	Inventory string `json:"inventory"`
	// ExternalName of the VM.
	ExternalName string `json:"externalName"`
	// State of the VM, and Text in the cloud's words.
	State string `json:"state"`
	Text  string `json:"text,omitempty"`
	// Since when, in RFC 3339.
	Since string `json:"since"`
}

// A Verdict is how a VM ends by a report that its Node may contradict.
type Verdict struct {
	State   VMState `json:"state"`
	Message string  `json:"message"`
}

// A VM is what the infrastructure step says.
type VM struct {
	State VMState `json:"state"`
	// Name of the VM resource and, as far as the cloud allows, of the VM.
	Name string `json:"name,omitempty"`
	// ProviderID, once it is known.
	ProviderID string `json:"providerID,omitempty"`
	// Confirmed means that the VM resource reports the ProviderID now. Otherwise it is what
	// the Machine's status remembers.
	Confirmed bool `json:"confirmed,omitempty"`
	// Addresses of the VM that its provider tells, none while it does not.
	Addresses []workernode.Address `json:"addresses,omitempty"`
	// Console of the VM, nil if its provider does not report one.
	Console *Console `json:"console,omitempty"`
	// ErrorCode and Message of the provider's last error, if it is in error.
	ErrorCode string `json:"errorCode,omitempty"`
	Message   string `json:"message,omitempty"`
	// Verdict of the cloud's inventory, nil if it has none. It holds unless the Node is Ready.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Problem with the class or the binding, which keeps a VM from being created.
	Problem *Problem `json:"problem,omitempty"`
	// LookAgain is how long it takes until the provider has to be asked to look at the VM, 0 if
	// it has not.
	LookAgain time.Duration `json:"lookAgain,omitempty"`
}
