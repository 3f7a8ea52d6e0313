package azure

import (
	"encoding/json"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/azure/v1alpha1"
	"github.com/drover-dev/drover/internal/native/nativetest"
	"github.com/drover-dev/drover/test/fakes"
	fakeazure "github.com/drover-dev/drover/test/fakes/azure"
	"github.com/drover-dev/drover/test/fakes/azuretest"
)

const (
	endpoint     = "https://azure.example.org"
	subscription = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
	sshKey       = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExampleEx operator"
)

// A lab is a fake cloud whose service principal has one secret.
type lab struct {
	*fakeazure.Cloud

	mu     sync.Mutex
	secret string
}

func newLab(t *testing.T, o fakeazure.Options) *lab {
	t.Helper()
	o.Report = func(err error) { t.Errorf("not as Microsoft describes it: %v", err) }
	l := &lab{Cloud: fakeazure.New(o)}
	l.rotate()
	return l
}

// rotate replaces the secret. The old one and its tokens are refused.
func (l *lab) rotate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.secret
	l.secret = l.NewSecret(fakeazure.Client)
	if old != "" {
		l.Revoke(fakeazure.Client, old)
	}
}

// deny removes rights of the service principal.
func (l *lab) deny(actions ...string) {
	l.Assign(fakeazure.Client, azuretest.Assignment{Actions: slices.DeleteFunc(slices.Clone(fakeazure.Actions), func(a string) bool { return slices.Contains(actions, a) })})
}

func (l *lab) credentials() credentials {
	l.mu.Lock()
	defer l.mu.Unlock()
	return json.RawMessage(l.Credentials(fakeazure.Client, l.secret, endpoint))
}

func (l *lab) reboots(name string) (out []string) {
	for _, v := range l.Existing() {
		if v.Name == name {
			out = v.Reboots
		}
	}
	return out
}

func newVM(l *lab, name string, attributes map[string]string) *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p := &vm.Spec.ForProvider
	p.Name, p.ResourceGroup, p.Location, p.Zone, p.Size = ptr.To(name), ptr.To(fakeazure.Group), ptr.To(fakeazure.Location), ptr.To("1"), ptr.To("Standard_D4s_v5")
	p.Image = &v1alpha1.Image{Publisher: ptr.To("Canonical"), Offer: ptr.To("ubuntu-24_04-lts"), SKU: ptr.To("server")}
	p.NetworkInterfaces = []v1alpha1.NetworkInterface{{SubnetID: l.Subnet("nodes")}}
	p.AdminUsername, p.SSHPublicKeys = ptr.To("operator"), []string{sshKey}
	p.Tags = attributes
	return vm
}

// cloudOf returns a lab for the cases that every cloud must pass.
func cloudOf(l *lab) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: nativetest.Config}}
	pc.Spec.SubscriptionID, pc.Spec.Endpoint = subscription, endpoint
	pc.Spec.Credentials.Source = v1alpha1.CredentialsSecret
	pc.Spec.Credentials.SecretRef = &v1alpha1.SecretKeySelector{
		Namespace: nativetest.CredentialsNamespace, Name: nativetest.CredentialsSecret, Key: nativetest.CredentialsKey,
	}
	return nativetest.Cloud[*v1alpha1.VirtualMachine, credentials]{
		Provider:    provider(fakes.InMemory(l)),
		AddToScheme: v1alpha1.AddToScheme,
		Config:      pc,
		Credentials: l.credentials,
		Rotate:      l.rotate,
		Secrets: func() []string {
			l.mu.Lock()
			defer l.mu.Unlock()
			return []string{l.secret, "5ec4e7"}
		},
		VM: func(name string, attributes map[string]string) *v1alpha1.VirtualMachine {
			return newVM(l, name, attributes)
		},
		UseUserData: func(vm *v1alpha1.VirtualMachine, ref xpv2.LocalSecretKeySelector) {
			vm.Spec.ForProvider.UserDataSecretRef = &ref
		},
		Invalid: func(vm *v1alpha1.VirtualMachine) string {
			vm.Spec.ForProvider.NetworkInterfaces = []v1alpha1.NetworkInterface{{SubnetID: "/subscriptions/x/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v"}}
			return "networkInterfaces[0].subnetID"
		},
		VMs: func() []nativetest.Existing {
			var out []nativetest.Existing
			for _, v := range l.Existing() {
				out = append(out, nativetest.Existing{Name: v.Name, UserData: string(v.UserData)})
			}
			return out
		},
		Leftovers: func() []string {
			if len(l.Existing()) > 0 {
				return nil
			}
			return l.Left()
		},
		Lose:       l.Lose,
		Stop:       l.PowerOff,
		Reboots:    l.reboots,
		Fake:       l,
		CreateCall: fakeazure.CreateVM,
		MostCalls:  5, MostDeletionCalls: 7, CreationTakes: 2 * time.Minute,
	}
}

// unkind are the options of a cloud that is as slow as the API may be.
func unkind() fakeazure.Options {
	// 25 reads a second: https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling.
	return fakeazure.Options{ListedAfter: 3 * time.Second, Step: 8 * time.Second, RateLimit: 200, Refill: 50 * time.Millisecond}
}

func TestEveryCase(t *testing.T) {
	nativetest.Run(t, func(t *testing.T) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
		t.Helper()
		return cloudOf(newLab(t, unkind()))
	})
}

// TestEveryCaseWithPublicAddresses has network interfaces and public IP addresses that are not ready at once.
func TestEveryCaseWithPublicAddresses(t *testing.T) {
	nativetest.Run(t, func(t *testing.T) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
		t.Helper()
		o := unkind()
		o.NetworkStep, o.PageSize = 3*time.Second, 20
		l := newLab(t, o)
		c := cloudOf(l)
		plain := c.VM
		c.VM = func(name string, attributes map[string]string) *v1alpha1.VirtualMachine {
			vm := plain(name, attributes)
			vm.Spec.ForProvider.NetworkInterfaces[0].PublicIP = &v1alpha1.PublicIP{}
			return vm
		}
		c.MostCalls, c.MostDeletionCalls = 10, 10
		return c
	})
}

// TestTwentyKillsMakeNoSecondVMAndLeaveNone kills the provider twenty times while 50 VMs are created and deleted. DROVER_SHORT
// leaves it out, because TestEveryCase kills the provider between each two steps of one VM.
func TestTwentyKillsMakeNoSecondVMAndLeaveNone(t *testing.T) {
	if os.Getenv("DROVER_SHORT") != "" {
		t.Skip("DROVER_SHORT is set")
	}
	nativetest.Kills(t, cloudOf(newLab(t, unkind())), 20, 1)
}
