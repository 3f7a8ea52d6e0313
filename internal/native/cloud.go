package native

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/inventory"
)

// A Resource is the managed resource of a VM.
type Resource interface {
	resource.ModernManaged
	client.Object

	// Observation returns the observed state of the VM, to read and to change.
	Observation() *v1alpha1.Observation
	// UserDataSource returns the source of the user data.
	UserDataSource() v1alpha1.UserData
}

// A VM is the state of a VM in its cloud.
type VM struct {
	State State
	// Text is the state in the cloud's own words.
	Text string
	// ProviderID of the VM's Node. It is required for a running VM.
	ProviderID string
	// Addresses of the VM. Nil means that the cloud shows none at the moment: the known ones are kept.
	Addresses []v1alpha1.Address
	// HasAddresses means that the cloud shows the addresses of a running VM, sooner or later. A running
	// VM without addresses is then observed again soon.
	HasAddresses bool
	// Problem is the failure of the last step, such as the error of a task. It is reported, and delays
	// the next step. An Account returns a Problem once.
	Problem error
}

// UserData reads the user data of a VM. An error names the Secret, and never its content.
type UserData func(context.Context) (string, error)

// An Account is one account of a cloud, which one configuration with its credentials accesses. Many
// reconciles use it concurrently, and it outlives them. If it implements io.Closer, it is closed
// after some minutes without use. If it implements inventory.ResourceLister, the inventories list
// its resources too.
//
// No method waits for a task of the cloud. Errors should be of the type Error, which has a class:
// any other error counts as Transient.
type Account[T Resource] interface {
	inventory.Finder

	// Place identifies the location of the account's VMs, such as the ID of the account and a region.
	// Rotated credentials and another address of the same API do not change it. The result is kept.
	Place(ctx context.Context) (string, error)

	// Prepare validates everything that the schema cannot validate, before anything is created. It may
	// set annotations, such as an ID that it chose: they are written before Create is called. While the
	// result of the last creation is unknown (meta.ExternalCreateIncomplete), it must choose the same
	// ID again, so that the cloud refuses a second creation.
	Prepare(ctx context.Context, vm T) error

	// FindLost returns the external name of a VM that an earlier creation of vm created. It finds the
	// VM by tags or by an idempotency token. It returns "" if there is none.
	FindLost(ctx context.Context, vm T) (string, error)

	// Get returns the VM with the external name of vm. The result is not older than since, the time of
	// the provider's last change. If the resource is being deleted (meta.WasDeleted) and only resources
	// are left that are deleted after the VM, the state is StateIncomplete. Get returns StateNone only
	// if it proved that the VM does not exist: a list omits VMs that the account may not read. It may
	// set fields of the status.
	Get(ctx context.Context, vm T, since time.Time) (VM, error)

	// Create starts the creation of the VM. It may set annotations. If the cloud chooses the external
	// name, Create sets it. Changes of the status are lost.
	Create(ctx context.Context, vm T, userData UserData) error

	// Continue carries out the next step of the creation of a VM with StateIncomplete. It may set
	// fields of the status.
	Continue(ctx context.Context, vm T, userData UserData) error

	// Reboot requests a reboot of a VM, in the states StateRunning and StateStopped, and does not wait for its end.
	// RebootSoft asks the operating system to restart, RebootHard resets the VM, also if its operating system hangs.
	// A VM that is powered off is powered on in both modes. It is called once for each request: any error but a
	// refusal without effect (Throttled, or Refused of the class Transient) ends the request.
	Reboot(ctx context.Context, vm T, mode machinev1alpha1.RebootMode) error

	// Delete carries out the next step of the deletion of a VM, in each state except StateNone and
	// StateDeleting. It may set fields of the status.
	Delete(ctx context.Context, vm T) error
}

// A Provider describes a cloud for the controllers. C is the type of its credentials, which the Secret
// has as JSON.
type Provider[T Resource, C any] struct {
	Kind   schema.GroupVersionKind
	Object T
	List   providerconfig.UserList
	// Users are the lists of further kinds that use configurations.
	Users []providerconfig.UserList

	// Configs are the kinds of configurations.
	Configs providerconfig.Configs
	// SecretLike is an example of the JSON in the Secret, for errors.
	SecretLike string
	// Open returns the account of a configuration. It makes no call.
	Open func(config client.Object, credentials C) (Account[T], error)

	// NamedByCloud means that the cloud chooses the external name. Otherwise the external name is
	// the UID of the managed resource, known before anything is created.
	NamedByCloud bool
	// Settle is the time after which the cloud certainly shows a VM that it accepted. After a creation
	// with an unknown result, nothing is created during this time.
	Settle time.Duration
	// Repeatable means that a creation with an unknown result may be repeated during Settle: the cloud
	// creates one VM per token that Prepare chose, and returns this VM. Only a deletion then waits for Settle. If the cloud
	// refuses the repetition, the result of the former creation stays unknown: Prepare must choose the same token until
	// Settle has passed since its time, which is that of the annotation external-create-pending.
	Repeatable bool
}
