package gcp

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/gcp/v1alpha1"
	"github.com/drover-dev/drover/internal/native/nativetest"
	"github.com/drover-dev/drover/test/fakes"
	fakegcp "github.com/drover-dev/drover/test/fakes/gcp"
)

const (
	endpoint = "https://google.example.org"
	zone     = "europe-west4-a"
	imageOf  = "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64"
)

// A lab is a fake cloud whose service account has one key.
type lab struct {
	*fakegcp.Cloud
	t *testing.T

	mu    sync.Mutex
	key   []byte
	keyID string
}

func newLab(t *testing.T, o fakegcp.Options) *lab {
	t.Helper()
	o.Report = func(err error) { t.Errorf("not as Google describes it: %v", err) }
	l := &lab{Cloud: fakegcp.New(o), t: t}
	l.rotate()
	return l
}

// rotate replaces the key. The old one and its tokens are refused.
func (l *lab) rotate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.keyID
	var err error
	if l.key, l.keyID, err = l.NewKey(fakegcp.Account, endpoint); err != nil {
		l.t.Fatal(err)
	}
	if old != "" {
		l.DeleteKey(fakegcp.Account, old)
	}
}

// deny removes permissions of the service account.
func (l *lab) deny(permissions ...string) {
	l.Grant(fakegcp.Account, slices.DeleteFunc(slices.Clone(fakegcp.Permissions), func(p string) bool { return slices.Contains(permissions, p) })...)
}

func (l *lab) credentials() credentials {
	l.mu.Lock()
	defer l.mu.Unlock()
	return credentials(l.key)
}

// secrets are the lines of the private key.
func (l *lab) secrets() []string {
	var key struct {
		PrivateKey string `json:"private_key"`
	}
	if err := json.Unmarshal(l.credentials(), &key); err != nil {
		l.t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(key.PrivateKey), "\n")
	return lines[1 : len(lines)-1]
}

func (l *lab) reboots(name string) (out []string) {
	for _, i := range l.Instances() {
		if i.Name == name {
			out = i.Reboots
		}
	}
	return out
}

var notOfLabels = regexp.MustCompile(`[^a-z0-9_-]`)

// labelValueOf returns a value as a label can have it.
func labelValueOf(v string) string { return notOfLabels.ReplaceAllString(v, "-") }

func newVM(name string, attributes map[string]string) *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p := &vm.Spec.ForProvider
	p.Name, p.Zone, p.MachineType = ptr.To(name), ptr.To(zone), ptr.To("n2-standard-4")
	p.BootDisk = &v1alpha1.BootDisk{Image: imageOf}
	p.BootDisk.SizeGB, p.BootDisk.Type = ptr.To(int32(50)), ptr.To("pd-balanced")
	p.NetworkInterfaces = []v1alpha1.NetworkInterface{{Subnetwork: ptr.To("nodes")}}
	p.Labels = map[string]string{}
	for k, v := range attributes {
		p.Labels[k] = labelValueOf(v)
	}
	return vm
}

// cloudOf returns a lab for the cases that every cloud must pass.
func cloudOf(l *lab) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: nativetest.Config}}
	pc.Spec.ProjectID, pc.Spec.Endpoint = "my-project", endpoint
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
		Secrets:     l.secrets,
		VM:          newVM,
		TagValue:    labelValueOf,
		UseUserData: func(vm *v1alpha1.VirtualMachine, ref xpv2.LocalSecretKeySelector) {
			vm.Spec.ForProvider.UserDataSecretRef = &ref
		},
		Invalid: func(vm *v1alpha1.VirtualMachine) string {
			vm.Spec.ForProvider.BootDisk = &v1alpha1.BootDisk{Image: imageOf}
			vm.Spec.ForProvider.BootDisk.SizeGB = ptr.To(int32(5))
			return "bootDisk.sizeGB"
		},
		VMs: func() []nativetest.Existing {
			var out []nativetest.Existing
			for _, i := range l.Instances() {
				out = append(out, nativetest.Existing{Name: i.Name, UserData: i.UserData})
			}
			return out
		},
		// A disk of an instance that is being removed counts as the instance.
		Leftovers: func() []string {
			if len(l.Instances()) > 0 {
				return nil
			}
			return l.Disks()
		},
		Lose:            l.Lose,
		Stop:            l.PowerOff,
		Reboots:         l.reboots,
		LacksSoftReboot: true,
		CutCreations: func(n int, then func()) {
			l.Break(fakegcp.Fault{Call: "compute.instances.insert", Times: n, Lost: true, Then: then})
		},
		CutAny:   l.CutAny,
		Throttle: l.Throttle,
		Calls: func() map[string]int {
			calls, _ := l.Calls()
			return calls
		},
		MostCalls: 4, MostDeletionCalls: 4, CreationTakes: time.Minute,
	}
}

func TestEveryCase(t *testing.T) {
	nativetest.Run(t, func(t *testing.T) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
		t.Helper()
		// 1500 calls a minute and project: https://cloud.google.com/compute/api-quota.
		return cloudOf(newLab(t, fakegcp.Options{ListedAfter: 3 * time.Second, Step: 4 * time.Second, RateLimit: 50, Refill: 40 * time.Millisecond}))
	})
}

// TestTwentyKillsMakeNoSecondInstanceAndLeaveNone kills the provider twenty times while 50 instances are created and deleted.
// DROVER_SHORT leaves it out, because TestEveryCase kills the provider between each two steps of one VM.
func TestTwentyKillsMakeNoSecondInstanceAndLeaveNone(t *testing.T) {
	if os.Getenv("DROVER_SHORT") != "" {
		t.Skip("DROVER_SHORT is set")
	}
	nativetest.Kills(t, cloudOf(newLab(t, fakegcp.Options{ListedAfter: 3 * time.Second, Step: 8 * time.Second, RateLimit: 50, Refill: 40 * time.Millisecond})), 20, 1)
}
