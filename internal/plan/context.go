// Package plan holds the values that planners share. The packages below it are the planners.
// Each is a pure function of a view and the time: it knows no protocol, client or clock.
package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/console"
	"github.com/drover-dev/drover/internal/workernode"
)

// Safety is the output of the step safety.
type Safety struct {
	// Frozen means that nothing may be created or replaced.
	Frozen bool `json:"frozen"`
	// Reason of the freeze: one word in CamelCase.
	Reason string `json:"reason,omitempty"`
	// Message is for users.
	Message string `json:"message,omitempty"`
	// Sets is the value of the label machine.drover.dev/freeze on the MachineSets of a
	// MachineDeployment. It is empty if they get none: each set checks whether its own cluster is
	// reachable.
	Sets string `json:"sets,omitempty"`
	// Problem with the cluster that new Machines join, which lasts until a user acts: they could not join. It is nil if
	// there is none.
	Problem *Problem `json:"problem,omitempty"`
}

// A RolloutGate is the output of a step of the user's own: whether the rollout of a MachineDeployment may replace
// healthy Machines now.
type RolloutGate struct {
	// Hold the rollout.
	Hold bool `json:"hold"`
	// Reason and Message are for users.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Until is the time at which the step is to be asked again, nil for the usual one. It ends no hold.
	Until *metav1.Time `json:"until,omitempty"`
}

// TokenSlack is the difference between the total life of a join token and the creation timeout
// of its Machine: the time for which a VM's creation may be delayed after the token was minted.
const TokenSlack = time.Hour

// A JoinRequest is the join token and the user data that a Machine needs. The Machine's
// controller carries it out.
type JoinRequest struct {
	// UserData is a template with placeholders for values that only the controller knows. It is
	// empty if OwnUserData is set: only the controller reads that Secret.
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
	// Revoked means that the token is no longer needed and shall be deleted.
	Revoked bool `json:"revoked,omitempty"`
	// Frozen means that a VM may have been created from the user data, so that it must not change.
	Frozen bool `json:"frozen,omitempty"`
}

// Template identifies the source of the user data.
func (r JoinRequest) Template() string {
	if o := r.OwnUserData; o != nil {
		return fmt.Sprintf("Secret %s, key %q, format %s", o.SecretName, o.Key, o.Format)
	}
	return r.UserData
}

// OwnUserData refers to a Secret with user data that Drover does not write.
type OwnUserData struct {
	SecretName string `json:"secretName"`
	// SecretNamespace is set for a ClusterMachineClass. If it is empty, the Secret is in the
	// Machine's namespace.
	SecretNamespace string `json:"secretNamespace,omitempty"`
	// Key of the Secret, empty for the default.
	Key string `json:"key,omitempty"`
	// Format that the class requires, empty for any.
	Format machinev1alpha1.ProvisioningFormat `json:"format,omitempty"`
	// Bootstrap is the UID of the Machine's Bootstrap, which must control the Secret. It is empty for a
	// Secret of the class.
	Bootstrap types.UID `json:"bootstrap,omitempty"`
}

// A JoinState is the observed state of a Machine's join token and user data.
type JoinState struct {
	// Published means that the Secret with the user data exists, filled from the template
	// with the Hash.
	Published bool   `json:"published,omitempty"`
	Hash      string `json:"hash,omitempty"`
	// Error is the reason why the token or the Secret could not be created, empty if there is none.
	Error string `json:"error,omitempty"`
	// Problem that a user must fix before a token is created, nil if there is none.
	Problem *Problem `json:"problem,omitempty"`
}

// Bootstrap is the output of the step bootstrap.
type Bootstrap struct {
	// Join requests the token and the user data, nil if they cannot be determined yet.
	Join *JoinRequest `json:"join,omitempty"`
	// SecretName and Key of the user data, once there is any.
	SecretName string `json:"secretName,omitempty"`
	Key        string `json:"key,omitempty"`
	// Problem with the input, which keeps the Machine Pending.
	Problem *Problem `json:"problem,omitempty"`
	// Waiting describes the condition that the user data waits for.
	Waiting string `json:"waiting,omitempty"`
}

// A Problem is invalid or missing input that a user can fix.
type Problem struct {
	// Reason is one word in CamelCase.
	Reason string `json:"reason"`
	// Message names the field, the value and the allowed values.
	Message string `json:"message"`
}

// A VMState is the progress of a VM.
type VMState string

// States of a VM.
const (
	// VMAbsent means that there is no VM resource yet.
	VMAbsent VMState = "Absent"
	// VMCreating means that the provider is creating the VM.
	VMCreating VMState = "Creating"
	// VMRunning means that the VM runs.
	VMRunning VMState = "Running"
	// VMFailed means that the VM failed and does not recover.
	VMFailed VMState = "Failed"
	// VMLost means that the VM existed and does not exist any more.
	VMLost VMState = "Lost"
	// VMCreateUnknown means that the provider does not know whether the VM was created.
	VMCreateUnknown VMState = "CreateUnknown"
)

// A Console is the observed console output of a VM. The guest writes it, so it only informs users:
// no decision depends on it.
type Console struct {
	// Excerpt of the text, as [console.Excerpt] returns it. It is empty until the console has been
	// read.
	Excerpt string `json:"excerpt,omitempty"`
	// Step of the bootstrap that was reported last, nil if there is none.
	Step *console.Step `json:"step,omitempty"`
	// Refusal is the line in which cloud-init or Ignition reports that it cannot read or apply the
	// user data. It is empty if there is none.
	Refusal string `json:"refusal,omitempty"`
}

// A RebootReport is what a VM resource reports about reboots.
type RebootReport struct {
	// Begun is the last request that the provider began to carry out, "" if none: see
	// [machinev1alpha1.RebootRequest].
	Begun string `json:"begun,omitempty"`
	// Refused is the request that the provider could not carry out, and Delayed the one that it repeats because the cloud
	// cannot carry it out now. Both are "" if it was carried out. Message is the error.
	Refused string `json:"refused,omitempty"`
	Delayed string `json:"delayed,omitempty"`
	Message string `json:"message,omitempty"`
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

// An InventoryReport is the state of a Machine's VM that two reads of an inventory in a row
// confirmed.
type InventoryReport struct {
	// Inventory that reports it, by kind, namespace and name.
	Inventory string `json:"inventory"`
	// ExternalName of the VM.
	ExternalName string `json:"externalName"`
	// State of the VM, and Text in the cloud's words.
	State string `json:"state"`
	Text  string `json:"text,omitempty"`
	// Since is the time of the first of these reads, in RFC 3339.
	Since string `json:"since"`
}

// A MissingConfig is a configuration of a cloud's provider that does not exist.
type MissingConfig struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	// Namespace is empty for a kind that is not namespaced.
	Namespace string `json:"namespace,omitempty"`
}

// A Verdict is the final state of a VM by an inventory's report. The VM's Node may contradict it.
type Verdict struct {
	State   VMState `json:"state"`
	Message string  `json:"message"`
}

// A VM is the output of the step infrastructure.
type VM struct {
	State VMState `json:"state"`
	// Name of the VM resource and, as far as the cloud allows, of the VM.
	Name string `json:"name,omitempty"`
	// ProviderID, once it is known.
	ProviderID string `json:"providerID,omitempty"`
	// Confirmed means that the VM resource reports the ProviderID now. Otherwise the ProviderID
	// comes from the Machine's status.
	Confirmed bool `json:"confirmed,omitempty"`
	// Addresses of the VM as its provider reports them. They are empty if the provider reports
	// none.
	Addresses []workernode.Address `json:"addresses,omitempty"`
	// Console of the VM, nil if its provider does not report one.
	Console *Console `json:"console,omitempty"`
	// Reboot is nil if the provider cannot reboot the VM.
	Reboot *RebootReport `json:"reboot,omitempty"`
	// Unidentified means that the VM resource is Ready, and the Composition's expression for the providerID yields
	// nothing.
	Unidentified bool `json:"unidentified,omitempty"`
	// AwaitsCompanion means that the VM exists, and that the Machine must not run yet, because a
	// companion that depends on the VM is not ready. The Message names it. It is false for a
	// Machine that has run.
	AwaitsCompanion bool `json:"awaitsCompanion,omitempty"`
	// ErrorCode and Message of the provider's last error, if it is in error.
	ErrorCode string `json:"errorCode,omitempty"`
	Message   string `json:"message,omitempty"`
	// InstanceType is which of the instance types of the class the VM has, or is tried. It is nil if that is not known,
	// and empty if the class lists none.
	InstanceType *machinev1alpha1.InstanceTypeStatus `json:"instanceType,omitempty"`
	// Discard is the UID of the VM resource if it is to be deleted, because the cloud refused its instance type: another
	// VM resource is created for the next one. It is empty otherwise.
	Discard types.UID `json:"discard,omitempty"`
	// Exhausted is the code of the refusals if the cloud refused all instance types of the class, and no VM exists since
	// then. It stays while they are tried again. It is empty otherwise.
	Exhausted string `json:"exhausted,omitempty"`
	// Verdict of the cloud's inventory, nil if it has none. It holds unless the Node is Ready.
	Verdict *Verdict `json:"verdict,omitempty"`
	// Problem with the class or the binding that prevents the creation of a VM.
	Problem *Problem `json:"problem,omitempty"`
	// LookAgain is the time until the provider must be requested to observe the VM again. It is 0
	// if that is not needed.
	LookAgain time.Duration `json:"lookAgain,omitempty"`
}
