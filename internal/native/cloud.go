package native

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/providerconfig"
	"github.com/drover-dev/drover/internal/inventory"
)

// A Resource is the managed resource of a VM.
type Resource interface {
	resource.ModernManaged
	client.Object

	// Observation returns the observed state of the VM, to be read and set.
	Observation() *v1alpha1.Observation
	// UserDataSource returns where the user data is.
	UserDataSource() v1alpha1.UserData
}

// A VM as its cloud shows it.
type VM struct {
	State State
	// Text is the state in the cloud's own words.
	Text string
	// ProviderID that the VM's Node has. It is required of a VM that runs.
	ProviderID string
	// Addresses are nil if the cloud does not show any at the moment: those that were known count.
	Addresses []v1alpha1.Address
	// HasAddresses means that the cloud shows addresses of VMs that run, sooner or later. Such a VM
	// without any is observed again soon.
	HasAddresses bool
	// Problem is why the last step did not succeed, such as the error of a task that ended. It is
	// reported, and the next step waits. An Account returns a Problem once.
	Problem error
}

// UserData reads the user data of a VM. An error names the Secret and not its content.
type UserData func(context.Context) (string, error)

// An Account is one account of a cloud, as one configuration with its credentials reaches it. It
// is used by many reconciles at once, and outlives them. If it is an io.Closer, it is closed when
// it was not used for some minutes. If it is an inventory.ResourceLister, the inventories list its
// resources too.
//
// No method waits for a task of the cloud. Each returns an Error, so that its class is known; any
// other error counts as Transient.
type Account[T Resource] interface {
	inventory.Finder

	// Place identifies where the VMs of the account are, such as the ID of the account and a
	// region. It is the same with rotated credentials and another address of the same API.
	Place(ctx context.Context) (string, error)

	// Prepare validates all that the schema cannot, before anything is created. It may set annotations,
	// which are written before Create is called, such as an ID that it chose. While the result of
	// the last creation is unknown (meta.ExternalCreateIncomplete), it must choose the same again,
	// so that the cloud refuses a second creation.
	Prepare(ctx context.Context, vm T) error

	// FindLost returns the external name of a VM that an earlier creation of vm made, by tags or by a
	// token of idempotence. It returns "" if there is none.
	FindLost(ctx context.Context, vm T) (string, error)

	// Get the VM by its external name. The result is not older than since, the last change from here.
	// If the VM is being deleted (meta.WasDeleted), a resource that is deleted after the VM counts as
	// a VM that is StateIncomplete. Get proves that a VM does not exist before it returns StateNone:
	// a list leaves out VMs that the account may not read. It may set fields of the status.
	Get(ctx context.Context, vm T, since time.Time) (VM, error)

	// Create begins to create the VM. It may set annotations, and it sets the external name if the
	// cloud chooses it. A change of the status is lost.
	Create(ctx context.Context, vm T, userData UserData) error

	// Continue takes the next step of the creation of a VM that is StateIncomplete. It may set
	// fields of the status.
	Continue(ctx context.Context, vm T, userData UserData) error

	// Delete takes the next step of the deletion of a VM, in any state but StateNone and
	// StateDeleting. It may set fields of the status.
	Delete(ctx context.Context, vm T) error
}

// A Provider is a cloud for the controllers. C are its credentials, as the Secret has them in JSON.
type Provider[T Resource, C any] struct {
	Kind   schema.GroupVersionKind
	Object T
	List   providerconfig.UserList

	// Configs are the kinds of configurations.
	Configs providerconfig.Configs
	// SecretOf a configuration is where its credentials are.
	SecretOf func(config client.Object) providerconfig.SecretKey
	// SecretLike is an example of the JSON in the Secret, for errors.
	SecretLike string
	// Open an account. It makes no call.
	Open func(config client.Object, credentials C) (Account[T], error)

	// NamedByCloud means that the cloud chooses the external name. Otherwise the external name is
	// the UID of the managed resource, known before anything is created.
	NamedByCloud bool
	// Settle is the time after which the cloud certainly shows a VM that it accepted. After a creation
	// of unknown result nothing is created for so long.
	Settle time.Duration
}
