package conformance

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/examples"
	"github.com/drover-dev/drover/test/kit"
)

// A Backing is the kind of cloud that the suite has behind a provider.
type Backing string

const (
	// realCloud is the cloud itself, with the provider from its package.
	realCloud Backing = "real"
	// realAPI is the software of the cloud, with the provider from its package. Only its hypervisor runs no VMs.
	realAPI Backing = "real API"
	// fakedAPI speaks the wire format of the cloud's API with the provider from its package.
	fakedAPI Backing = "faked API"
	// judgedAPI is a fakedAPI, and the model that the vendor publishes of the API judges each request and response.
	judgedAPI Backing = "faked API, judged by the model of the vendor"
	// recordedAPI is a fakedAPI whose answers are compared with recorded ones of the cloud's own software.
	recordedAPI Backing = "faked API, judged by the software of the cloud"
	// inMemory is the unmodified in-memory provider of Cluster API, with the provider from its package.
	inMemory Backing = "in memory"
	// played is a simulator in place of the cloud and of the provider: it writes the status that
	// the provider would write.
	played Backing = "played"
)

// A Cloud is a provider with the cloud, or the fake of one, behind it.
type Cloud interface {
	// Provider returns the name of the cloud in the suite. Unless labelOf maps it, it is also
	// spec.provider of the classes and the label of the Composition.
	Provider() string
	// Backing returns the kind of cloud behind the provider.
	Backing() Backing
	// Cannot returns the cases that the provider cannot have, by name, with the reason.
	Cannot() map[string]string
	// Install installs the provider on a control plane that has Drover, as a user does, and starts
	// the fake of its cloud. It is called once, before any Account.
	Install(ctx context.Context, p *kit.Plane) error
	// Close stops everything that Install started.
	Close()
	// Account returns an account at the cloud for the Machines of one fleet, with valid
	// credentials.
	Account(t *testing.T, f kit.Fleet) Account
}

// An Account has the VMs of one fleet. It exists until the end of the test.
type Account interface {
	// Class returns a class for the VMs, with the configuration of the account: see classOf.
	Class(t *testing.T) *machinev1alpha1.MachineClass
	// VMs returns the VMs that the cloud has, without those that it is deleting.
	VMs(ctx context.Context) ([]VM, error)
	// VMKind returns the kind of the managed resource of a VM.
	VMKind() schema.GroupVersionKind

	// Refuse makes the cloud refuse the VM of a Machine with an error of a class, until Accept.
	Refuse(t *testing.T, machine string, code fn.ErrorCode)
	// Accept makes the cloud create the VM of a Machine after all.
	Accept(t *testing.T, machine string)
	// Lose deletes a VM at the cloud without the provider, as a user may.
	Lose(t *testing.T, id string)
	// SetCredentials sets the credentials with which the provider calls the cloud.
	SetCredentials(t *testing.T, c Credentials)
}

// Credentials of an account.
type Credentials string

const (
	// CredentialsRight are accepted by the cloud.
	CredentialsRight Credentials = "right"
	// CredentialsWrong exist, and the cloud refuses them.
	CredentialsWrong Credentials = "wrong"
	// CredentialsMissing means that there is no Secret.
	CredentialsMissing Credentials = "missing"
)

// OrphanAccount is an Account whose provider has an inventory.
type OrphanAccount interface {
	Account
	// CreateVM creates a VM with tags at the cloud, without the provider. It returns the external
	// name.
	CreateVM(t *testing.T, name string, tags map[string]string) string
	// ProviderConfig returns the configuration of the inventory that lists the VM.
	ProviderConfig() machinev1alpha1.VMProviderConfigReference
}

// InventoryAccount is an OrphanAccount whose provider may not notice the deletion of a VM at the
// cloud.
type InventoryAccount interface {
	OrphanAccount
	// PassOver deletes a VM at the cloud so that only the list of VMs shows it: the provider shows
	// the old state, and the Node stays.
	PassOver(t *testing.T, id string)
	// Place returns the place of the VMs, for spec.forProvider of an OrphanCollector.
	Place() map[string]any
}

// LeftAccount is an OrphanAccount whose cloud may have resources beside the VMs that nothing uses.
type LeftAccount interface {
	OrphanAccount
	// Leave creates a resource with tags, such as a data disk, that no VM uses. It returns its ID, or "" if the
	// cloud has no such resources.
	Leave(t *testing.T, name string, tags map[string]string) string
}

// CompanionAccount is an Account whose VMs may have companions.
type CompanionAccount interface {
	Account
	// Beside returns the companions that the cloud has, and a description of each attempt to delete
	// a companion while its VM used it.
	Beside(ctx context.Context) (things, torn []string)
}

// A VM as its cloud has it.
type VM struct {
	// ID is its external name.
	ID   string
	Tags map[string]string
	// Name of a VM without tags of its own, because the cloud never deletes a tag; empty where
	// tags name the Machine.
	Name string
	// UserData is the user data that the VM reads. It is nil if the cloud does not show it: then
	// only a Node that joins proves it.
	UserData []byte
}

// classOf reads the class of an example for a fleet, for a spot VM where the example shows one.
func classOf(t *testing.T, f kit.Fleet, file string, config machinev1alpha1.VMProviderConfigReference) *machinev1alpha1.MachineClass {
	t.Helper()
	b, err := examples.ReadSpot(filepath.Join(kit.Root(), file))
	must(t, err)
	c := &machinev1alpha1.MachineClass{}
	must(t, yaml.UnmarshalStrict(b, c))
	c.Namespace, c.Name = f.Namespace, "conformance"
	c.Spec.ProviderConfigRef = config
	return c
}

// setForProvider sets a field of forProvider in a class.
func setForProvider(t *testing.T, c *machinev1alpha1.MachineClass, field string, value any) {
	t.Helper()
	forProvider := map[string]any{}
	must(t, json.Unmarshal(c.Spec.ForProvider.Raw, &forProvider))
	forProvider[field] = value
	raw, err := json.Marshal(forProvider)
	must(t, err)
	c.Spec.ForProvider.Raw = raw
}

// acceptGuestAddresses lets the approver accept addresses that guests report. The guests of the local
// cloud have addresses in this network.
func acceptGuestAddresses(ctx context.Context, p *kit.Plane) error {
	pc := &clusterv1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	return p.Client.Patch(ctx, pc, client.RawPatch(k8stypes.MergePatchType, []byte(`{"spec": {"certificates": {"guestCIDRs": ["10.200.0.0/16"]}}}`)))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
