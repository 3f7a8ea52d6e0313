package step

import (
	"encoding/json"
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// Keys under which steps leave word for the steps after them. A step of somebody
// else's may read or replace what is there.
const (
	// ContextSafety holds a Safety.
	ContextSafety = "drover.dev/safety"
	// ContextBootstrap holds a Bootstrap.
	ContextBootstrap = "drover.dev/bootstrap"
	// ContextVM holds a VM.
	ContextVM = "drover.dev/virtual-machine"
	// ContextJoin holds a JoinState when the pipeline of a Machine begins.
	ContextJoin = "drover.dev/join"
	// ContextNode holds a [workernode.WorkerNode]: what is known of the Machine's Node when
	// the pipeline begins, and what it shall be like when the pipeline ends.
	ContextNode = "drover.dev/node"
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

// A JoinRequest is the join token and the user data that a Machine needs. The Machine's
// controller carries it out.
type JoinRequest struct {
	// UserData is a template with placeholders for what only the controller knows.
	UserData string `json:"userData,omitempty"`
	// Encoding of the user data in its Secret.
	Encoding clusterv1alpha1.UserDataEncoding `json:"encoding,omitempty"`
	// TTL of one lease of the token, at least one minute.
	TTL metav1.Duration `json:"ttl"`
	// MaxLife of the token, renewals included.
	MaxLife metav1.Duration `json:"maxLife"`
	// Groups that the token authenticates as, beside system:bootstrappers.
	Groups []string `json:"groups,omitempty"`
	// Revoked means that no token is wanted any more.
	Revoked bool `json:"revoked,omitempty"`
	// Frozen means that a VM may have been made from the user data: it must not change.
	Frozen bool `json:"frozen,omitempty"`
}

// A JoinState is what is known of a Machine's join token and user data.
type JoinState struct {
	// Published means that the Secret with the user data exists, filled from the template
	// with the Hash.
	Published bool   `json:"published,omitempty"`
	Hash      string `json:"hash,omitempty"`
	// Error is why the token or the Secret could not be made, empty if there is none.
	Error string `json:"error,omitempty"`
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
	Addresses []VMAddress `json:"addresses,omitempty"`
	// ErrorCode and Message of the provider's last error, if it is in error.
	ErrorCode string `json:"errorCode,omitempty"`
	Message   string `json:"message,omitempty"`
	// Problem with the class or the binding, which keeps a VM from being created.
	Problem *Problem `json:"problem,omitempty"`
}

// A VMAddress is an address of a VM.
type VMAddress struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

// Context reads what an earlier step left, and false if it left nothing.
func Context(req *fnv1.RunFunctionRequest, key string, into any) (bool, error) {
	v, ok := req.GetContext().GetFields()[key]
	if !ok {
		return false, nil
	}
	b, err := v.MarshalJSON()
	if err != nil {
		return false, fmt.Errorf("cannot read context %q: %w", key, err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return false, fmt.Errorf("cannot decode context %q: %w", key, err)
	}
	return true, nil
}

// SetContext leaves word for the steps after this one.
func (r Response) SetContext(key string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot encode context %q: %w", key, err)
	}
	v := &structpb.Value{}
	if err := v.UnmarshalJSON(b); err != nil {
		return fmt.Errorf("cannot encode context %q: %w", key, err)
	}
	response.SetContextKey(r.RunFunctionResponse, key, v)
	return nil
}
