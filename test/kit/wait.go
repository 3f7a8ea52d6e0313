package kit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

// interval between two attempts to change an object.
const interval = 200 * time.Millisecond

// Throughout polls check while another Machine is created, joins, and is deleted again. As soon as check returns a text
// other than "", it fails the test. Whatever the controllers had to do before that Machine existed is done then, regardless of
// how slow the computer is, so this shows that something does not happen.
func (p *Plane) Throughout(t testing.TB, check func(ctx context.Context) string) {
	t.Helper()
	f, err := p.later(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "later-" + rand.String(8)}, Spec: f.MachineSpec(NewVersion)}
	f.Create(t, m)
	deleted := false
	patience.Throughout(t, func(ctx context.Context) string {
		err := f.Client.Get(ctx, client.ObjectKeyFromObject(m), m)
		switch {
		case deleted && client.IgnoreNotFound(err) == nil && err != nil:
			return ""
		case err != nil:
			return err.Error()
		case !deleted && m.Status.Phase == machinev1alpha1.MachineRunning:
			if err := f.Client.Delete(ctx, m); err != nil {
				return err.Error()
			}
			deleted = true
		}
		return fmt.Sprintf("Machine %s, which was created later, is %s", m.Name, m.Status.Phase)
	}, check)
}

// laterPrefix begins the names of the namespaces with the Machines of Throughout.
const laterPrefix = "later-"

// later returns the fleet of the Machines of Throughout, which has a namespace of its own.
func (p *Plane) later(ctx context.Context) (Fleet, error) {
	p.laterOnce.Do(func() {
		p.laterFleet, p.laterErr = p.MakeFleetIn(ctx, strings.Replace(NewNamespaceName(), "e2e-", laterPrefix, 1))
	})
	return p.laterFleet, p.laterErr
}
