package azure

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/test/fakes/azuretest"
)

const (
	tenant       = "5b5bd2b4-1c7e-4d4d-9a43-2c4f9a1d0a01"
	subscription = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
	client       = "3f0d2c11-7d7b-4a57-8d2e-6f0a4f4a9c02"
	at           = "https://azure.example.org"

	ours   = "6d8c1f70-0000-4000-8000-000000000001"
	theirs = "6d8c1f70-0000-4000-8000-000000000002"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a subscription that an identity with the role Reader lists.
type world struct {
	*azuretest.Cloud
	state  *azuretest.Memory
	secret string
}

// inWorld runs a test with a fake clock, which advances while every goroutine waits.
func inWorld(t *testing.T, o azuretest.Options, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		state := &azuretest.Memory{}
		if o.State == nil {
			o.State = state
		}
		o.Tenant, o.Subscription = tenant, subscription
		w := &world{Cloud: azuretest.New(o), state: state}
		w.Assign(client, azuretest.Assignment{Actions: azuretest.Reader})
		w.secret = w.NewSecret(client)
		f(t, w)
	})
}

func (w *world) lister(t *testing.T, change ...func(*Options)) inventory.ResourceLister {
	t.Helper()
	o := Options{Credentials: w.Credentials(client, w.secret, at), Transport: w.Transport()}
	for _, c := range change {
		c(&o)
	}
	l, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return l.(inventory.ResourceLister)
}

// finder is the interface by which an inventory finds VMs that the list lacks.
type finder interface {
	Find(ctx context.Context, externalNames []string) ([]inventory.VM, bool, error)
}

func tags(installation string) map[string]string {
	return map[string]string{
		"drover-installation": installation, "drover-cluster": "ClusterProviderConfig/default", "drover-namespace": "fleet",
		"drover-machine": "workers-x7k2p", "drover-machine-uid": "uid-1",
	}
}

func vm(name string) azuretest.VM {
	return azuretest.VM{Name: name, ResourceGroup: "Production-Nodes", Tags: tags(ours), CreatedAt: noon, PowerState: "running"}
}

func vms(n int) []azuretest.VM {
	out := make([]azuretest.VM, n)
	for i := range out {
		out[i] = vm(fmt.Sprintf("vm-%03d", i))
	}
	return out
}

// mustFail asserts that a list returns no VMs, and an error that contains a text.
func mustFail(t *testing.T, ctx context.Context, l inventory.Lister, want string) error {
	t.Helper()
	found, complete, err := l.List(ctx, ours)
	if len(found) > 0 || complete || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%d VMs, complete: %t, error %v, want %q", len(found), complete, err, want)
	}
	return err
}

func mustList(t *testing.T, l inventory.Lister, n int) []inventory.VM {
	t.Helper()
	found, complete, err := l.List(t.Context(), ours)
	if err != nil || !complete || len(found) != n {
		t.Fatalf("%d VMs, complete: %t, error %v, want %d", len(found), complete, err, n)
	}
	return found
}
