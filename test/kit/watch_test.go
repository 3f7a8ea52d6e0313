package kit

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

// A Machine is deleted after the guard lists it and before the guard watches, and then the API
// server ends the watch. The guard must see the deletion and the changes after it.
func TestAGuardSeesAllThatHappensAfterItBegins(t *testing.T) {
	machine := func(name, version string) *machinev1alpha1.Machine {
		return &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}
	// The event that a watch from a version sends before the API server ends the watch.
	shows := map[string]watch.Event{
		"10": {Type: watch.Deleted, Object: machine("a", "11")},
		"11": {Type: watch.Added, Object: machine("c", "12")},
	}
	f := Fleet{Plane: &Plane{Client: interceptor.NewClient(fake.NewFakeClient(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, l client.ObjectList, _ ...client.ListOption) error {
			machines := l.(*machinev1alpha1.MachineList)
			machines.ResourceVersion = "10"
			machines.Items = []machinev1alpha1.Machine{*machine("a", "3"), *machine("b", "4")}
			return nil
		},
		Watch: func(_ context.Context, _ client.WithWatch, _ client.ObjectList, o ...client.ListOption) (watch.Interface, error) {
			from := (&client.ListOptions{}).ApplyOptions(o).AsListOptions().ResourceVersion
			w := watch.NewFakeWithChanSize(1, false)
			if e, ok := shows[from]; ok {
				w.Action(e.Type, e.Object)
				w.Stop()
			}
			return w, nil
		},
	})}}

	seen := make(chan int, 3)
	g := f.GuardBy(t, func(machines map[string]*machinev1alpha1.Machine) []string {
		seen <- len(machines)
		return nil
	})
	for _, want := range []int{2, 1, 2} {
		select {
		case got := <-seen:
			if got != want {
				t.Fatalf("the guard saw %d Machines, expected %d", got, want)
			}
		case <-patience.Over():
			t.Fatalf("the guard did not see %d Machines", want)
		}
	}
	g.Done(t, 3)
}
