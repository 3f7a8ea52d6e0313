package conformance

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
)

// A Backing answers in place of a cloud.
type Backing string

const (
	// real is the cloud itself, with the provider from its package.
	real Backing = "real"
	// fakedAPI speaks the wire format of the cloud's API with the provider from its package.
	fakedAPI Backing = "faked API"
	// played is a simulator in place of the provider too: it writes what the provider would write.
	played Backing = "played"
)

// A Cloud is a provider, and what plays the cloud behind it.
type Cloud interface {
	// Provider of the classes: the label of the Composition.
	Provider() string
	// Backing is what answers in place of the cloud.
	Backing() Backing
	// Cannot says of the cases that the provider cannot have, by their names, why.
	Cannot() map[string]string
	// Install on a control plane that has Drover what a user installs for the provider,
	// and start what plays the cloud. It is called once, before any Account.
	Install(ctx context.Context, p *kit.Plane) error
	// Close ends what Install started.
	Close()
	// Account at the cloud for the Machines of one fleet, with right credentials.
	Account(t *testing.T, f kit.Fleet) Account
}

// An Account has the VMs of one fleet. It ends with the test.
type Account interface {
	// Class that VMs can be made of, with the account's credentials: see classOf.
	Class(t *testing.T) *machinev1alpha1.MachineClass
	// VMs that the cloud has, without those that it is deleting.
	VMs(ctx context.Context) ([]VM, error)
	// VMKind is the kind of the VM's managed resource.
	VMKind() schema.GroupVersionKind

	// Refuse to create the VM of a Machine with an error of a class, from now on.
	Refuse(t *testing.T, machine string, code fn.ErrorCode)
	// Accept it after all.
	Accept(t *testing.T, machine string)
	// Lose a VM: somebody deletes it at the cloud.
	Lose(t *testing.T, id string)
	// SetCredentials by which the provider goes to the cloud.
	SetCredentials(t *testing.T, c Credentials)
}

// Credentials of an account.
type Credentials string

const (
	// CredentialsRight are taken by the cloud.
	CredentialsRight Credentials = "right"
	// CredentialsWrong are there, and the cloud does not take them.
	CredentialsWrong Credentials = "wrong"
	// CredentialsMissing: there is no Secret.
	CredentialsMissing Credentials = "missing"
)

// OrphanAccount is an Account whose provider has an inventory.
type OrphanAccount interface {
	Account
	// CreateVM at the cloud, with tags, past the provider. It returns its external name.
	CreateVM(t *testing.T, name string, tags map[string]string) string
	// ProviderConfig that sees it.
	ProviderConfig() machinev1alpha1.VMProviderConfigReference
}

// InventoryAccount is an OrphanAccount whose VMs are resources of a provider that passes over one
// that is gone.
type InventoryAccount interface {
	OrphanAccount
	// PassOver a VM that somebody deletes at the cloud: nothing but the list of VMs shows it.
	PassOver(t *testing.T, id string)
	// Place of the VMs, for spec.forProvider of an OrphanCollector.
	Place() map[string]any
}

// CompanionAccount is an Account whose VMs may have resources beside them.
type CompanionAccount interface {
	Account
	// Beside the VMs there are these things, and some were to be deleted while their VM
	// had them.
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
	// UserData as the VM reads it, nil where the cloud shows it to nobody: then a Node
	// that joins is all that tells of it.
	UserData []byte
}

// classOf reads the class of an example for a fleet.
func classOf(t *testing.T, f kit.Fleet, file string, config machinev1alpha1.VMProviderConfigReference) *machinev1alpha1.MachineClass {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(kit.Root(), file))
	must(t, err)
	c := &machinev1alpha1.MachineClass{}
	must(t, yaml.UnmarshalStrict(b, c))
	c.Namespace, c.Name = f.Namespace, "conformance"
	c.Spec.ProviderConfigRef = config
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
