package gcp

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/test/fakes/gcptest"
)

const (
	projectOfTest = "my-project"
	account       = "drover-inventory@my-project.iam.gserviceaccount.com"
	at            = "https://google.example.org"

	ours   = "6d8c1f70-0000-4000-8000-000000000001"
	theirs = "6d8c1f70-0000-4000-8000-000000000002"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// world is a project that a service account may list.
type world struct {
	*gcptest.Cloud
	state *gcptest.Memory
	key   []byte
	keyID string
}

// inWorld runs a test with a fake clock, which advances while every goroutine waits.
func inWorld(t *testing.T, o gcptest.Options, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newWorld(t, o, at)) })
}

func newWorld(t *testing.T, o gcptest.Options, at string) *world {
	t.Helper()
	state := &gcptest.Memory{}
	o.State, o.Project = state, projectOfTest
	w := &world{Cloud: gcptest.New(o), state: state}
	w.Grant(account, gcptest.Viewer...)
	w.key, w.keyID = w.newKey(t, at)
	return w
}

func (w *world) newKey(t *testing.T, at string) ([]byte, string) {
	t.Helper()
	key, id, err := w.NewKey(account, at)
	if err != nil {
		t.Fatal(err)
	}
	return key, id
}

func (w *world) lister(t *testing.T, change ...func(*Options)) inventory.ResourceLister {
	t.Helper()
	o := Options{Credentials: w.key, Endpoint: at, Transport: w.Transport()}
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

func labels(installation string) map[string]string {
	return map[string]string{
		"drover-installation": installation, "drover-cluster": "clusterproviderconfig-default-x", "drover-namespace": "fleet",
		"drover-machine": "workers-x7k2p", "drover-machine-uid": "uid-1",
	}
}

func vm(name string) gcptest.VM {
	return gcptest.VM{Name: name, Zone: "europe-west4-a", Labels: labels(ours), CreatedAt: noon, Metadata: map[string]string{"user-data": "#cloud-config token"}}
}

func vms(n int) []gcptest.VM {
	zones := []string{"europe-west4-a", "europe-west4-b", "europe-west4-c"}
	out := make([]gcptest.VM, n)
	for i := range out {
		out[i] = vm(fmt.Sprintf("vm-%03d", i))
		out[i].Zone = zones[i%len(zones)]
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
