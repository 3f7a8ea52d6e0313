package aws

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/aws/v1alpha1"
	"github.com/drover-dev/drover/internal/native/nativetest"
	"github.com/drover-dev/drover/test/fakes"
	fakeaws "github.com/drover-dev/drover/test/fakes/aws"
	"github.com/drover-dev/drover/test/fakes/awsmodel"
)

const (
	accountID = "123456789012"
	keyID     = "AKIAIOSFODNN7EXAMPLE"
	roleARN   = "arn:aws:iam::210987654321:role/drover"
)

// A lab is a fake cloud with one access key, whose requests and responses Amazon's models judge.
type lab struct {
	*fakeaws.Cloud
	judge *awsmodel.Judge

	mu     sync.Mutex
	secret string
	n      int
	denied []string
}

// newLab returns a lab. Each violation of a model fails the test.
func newLab(t *testing.T, m awsmodel.Models, o fakeaws.Options) *lab {
	t.Helper()
	l := &lab{Cloud: fakeaws.New(o)}
	l.judge = awsmodel.NewJudge(m, l.Cloud, func(err error) { t.Errorf("Amazon's model refuses: %v", err) })
	l.rotate()
	return l
}

func (l *lab) rotate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	l.secret = fmt.Sprintf("5ec4e7SecretAccessKey%012d", l.n)
	l.SetKey(keyID, fakeaws.Key{Secret: l.secret, Account: accountID, Denied: l.denied, Roles: map[string]string{roleARN: "tenant-1"}})
}

// deny removes the right to call actions.
func (l *lab) deny(actions ...string) {
	l.denied = actions
	l.rotate()
}

func (l *lab) credentials() keys {
	l.mu.Lock()
	defer l.mu.Unlock()
	return keys{AccessKeyID: keyID, SecretAccessKey: l.secret}
}

// reboots returns the reboots of the instance with a name.
func (l *lab) reboots(name string) (out []string) {
	for _, i := range l.Instances() {
		if i.Name == name {
			out = i.Reboots
		}
	}
	return out
}

func newVM(name string, attributes map[string]string) *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p := &vm.Spec.ForProvider
	p.Name, p.InstanceType, p.ImageID = ptr.To(name), ptr.To("m7i.large"), ptr.To("ami-ubuntu")
	p.SubnetID, p.SecurityGroupIDs = ptr.To("subnet-a"), []string{"sg-nodes"}
	p.RootVolume = &v1alpha1.VolumeParameters{SizeGiB: ptr.To(int32(50)), Type: "gp3", Encrypted: ptr.To(true)}
	p.Tags = attributes
	return vm
}

// cloudOf returns a lab for the cases that every cloud must pass.
func cloudOf(l *lab) nativetest.Cloud[*v1alpha1.VirtualMachine, keys] {
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: nativetest.Config}}
	pc.Spec.Region = "eu-west-1"
	pc.Spec.Credentials.Source = v1alpha1.CredentialsSecret
	pc.Spec.Credentials.SecretRef = &v1alpha1.SecretKeySelector{
		Namespace: nativetest.CredentialsNamespace, Name: nativetest.CredentialsSecret, Key: nativetest.CredentialsKey,
	}
	return nativetest.Cloud[*v1alpha1.VirtualMachine, keys]{
		Provider:    provider(fakes.InMemory(l.judge)),
		AddToScheme: v1alpha1.AddToScheme,
		Config:      pc,
		Credentials: l.credentials,
		Rotate:      l.rotate,
		Secrets:     func() []string { return []string{l.credentials().SecretAccessKey} },
		VM:          newVM,
		UseUserData: func(vm *v1alpha1.VirtualMachine, ref xpv2.LocalSecretKeySelector) {
			vm.Spec.ForProvider.UserDataSecretRef = &ref
		},
		Invalid: func(vm *v1alpha1.VirtualMachine) string {
			vm.Spec.ForProvider.RootVolume = &v1alpha1.VolumeParameters{SizeGiB: ptr.To(int32(1))}
			return "rootVolume.sizeGiB"
		},
		VMs: func() []nativetest.Existing {
			var out []nativetest.Existing
			for _, i := range l.Instances() {
				out = append(out, nativetest.Existing{Name: i.Name, UserData: string(i.UserData)})
			}
			return out
		},
		// A volume or an interface of an instance that is shutting down counts as the instance.
		Leftovers: func() []string {
			if len(l.Instances()) > 0 {
				return nil
			}
			var out []string
			for _, r := range l.Resources() {
				out = append(out, r.ID)
			}
			return out
		},
		Lose:      func(name string) { l.Lose(l.ID(name)) },
		Stop:      func(name string) { l.PowerOff(l.ID(name)) },
		Reboots:   l.reboots,
		OneReboot: true,
		CutAny:    l.CutAny,
		Throttle:  l.Throttle,
		MostCalls: 6,
		CutCreations: func(n int, then func()) {
			l.Break(fakeaws.Fault{Call: "RunInstances", Times: n, Lost: true, Then: then})
		},
		Calls: func() map[string]int {
			calls, _ := l.Calls()
			return calls
		},
		MostDeletionCalls: 4, CreationTakes: 10 * time.Minute,
	}
}

func TestEveryCase(t *testing.T) {
	m := awsmodel.Load(t)
	nativetest.Run(t, func(t *testing.T) nativetest.Cloud[*v1alpha1.VirtualMachine, keys] {
		return cloudOf(newLab(t, m, fakeaws.Options{ShownAfter: 5 * time.Second, Step: 8 * time.Second, Limited: true}))
	})
}

// codesWithPage are the codes of the fake that Amazon's documentation in the module does not name, and that the page "Error
// codes for the Amazon EC2 API" or the reference of the Security Token Service has.
var codesWithPage = []string{
	"AuthFailure", "IdempotentParameterMismatch", "RequestLimitExceeded", "SignatureDoesNotMatch", "InvalidClientTokenId", "Throttling",
}

func documented(m awsmodel.Models, code string) bool {
	return slices.Contains(codesWithPage, code) || m.EC2.Documents(code) || m.STS.Documents(code)
}

// TestTwentyKillsMakeNoSecondInstanceAndLeaveNone kills the provider twenty times while 50 instances are created and deleted.
// DROVER_SHORT leaves it out, because TestEveryCase kills the provider between each two steps of one VM.
func TestTwentyKillsMakeNoSecondInstanceAndLeaveNone(t *testing.T) {
	if os.Getenv("DROVER_SHORT") != "" {
		t.Skip("the long form")
	}
	m := awsmodel.Load(t)
	nativetest.Kills(t, cloudOf(newLab(t, m, fakeaws.Options{ShownAfter: 5 * time.Second, Step: 8 * time.Second, Limited: true})), 20, 1)
}
