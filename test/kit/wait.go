package kit

import (
	"context"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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
	f.throughout(t, "small", func(m *machinev1alpha1.Machine) bool { return m.Status.Phase == machinev1alpha1.MachineRunning }, check)
}

// ThroughoutReport is Throughout without a VM: the other Machine is one of the fleet, has a class that does not exist, and is
// reported for that. Nothing else is created.
func (f Fleet) ThroughoutReport(t testing.TB, check func(ctx context.Context) string) {
	t.Helper()
	f.throughout(t, "no-such-class", func(m *machinev1alpha1.Machine) bool {
		c := meta.FindStatusCondition(m.Status.Conditions, machinev1alpha1.ConditionValid)
		return c != nil && c.Reason == machinev1alpha1.ReasonClassNotFound
	}, check)
}

// throughout polls check until a Machine that is created now is observed, and then deleted.
func (f Fleet) throughout(t testing.TB, class string, observed func(m *machinev1alpha1.Machine) bool, check func(ctx context.Context) string) {
	t.Helper()
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "later-" + rand.String(8)}, Spec: f.MachineSpec(NewVersion)}
	m.Spec.ClassRef.Name = class
	f.Create(t, m)
	deleted := false
	patience.Throughout(t, func(ctx context.Context) string {
		err := f.Client.Get(ctx, client.ObjectKeyFromObject(m), m)
		switch {
		case deleted && apierrors.IsNotFound(err):
			return ""
		case err != nil:
			return err.Error()
		case !deleted && observed(m):
			if err := f.Client.Delete(ctx, m); err != nil {
				return err.Error()
			}
			deleted = true
		}
		return fmt.Sprintf("Machine %s, which was created later, is %s: %+v", m.Name, m.Status.Phase, m.Status.Conditions)
	}, check)
}

// later returns the fleet of the Machines of Throughout, which has a namespace of its own.
func (p *Plane) later(ctx context.Context) (Fleet, error) {
	p.laterOnce.Do(func() {
		p.laterFleet, p.laterErr = p.MakeFleetIn(ctx, "later-"+rand.String(8))
	})
	return p.laterFleet, p.laterErr
}
