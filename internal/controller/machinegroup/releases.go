package machinegroup

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/group"
)

// releases are the last states of Machines that are gone, until the status of their group has them. Only the
// watch has the last state of an object: the cache does not have it any more when the group is reconciled. A
// restart loses the Machines that were gone for less than the delay of a status. Their drain then has no
// duration.
type releases struct {
	mu     sync.Mutex
	groups map[types.NamespacedName][]v1alpha1.ReleasedMachine
}

func newReleases() *releases {
	return &releases{groups: map[types.NamespacedName][]v1alpha1.ReleasedMachine{}}
}

// watch returns a predicate that records each Machine that is gone before its group is enqueued. It filters
// nothing.
func (r *releases) watch() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(e event.DeleteEvent) bool {
		if m, ok := e.Object.(*v1alpha1.Machine); ok {
			r.add(m)
		}
		return true
	}}
}

func (r *releases) add(m *v1alpha1.Machine) {
	by := metav1.GetControllerOfNoCopy(m)
	released, counts := group.ReleaseOf(m, time.Now())
	if by == nil || by.Kind != v1alpha1.MachineSetGroupVersionKind.Kind || !counts {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := types.NamespacedName{Namespace: m.Namespace, Name: by.Name}
	all := append(r.groups[name], released)
	r.groups[name] = all[max(0, len(all)-group.MaxReleased):]
}

// of returns the Machines of a group that are gone, oldest first.
func (r *releases) of(name types.NamespacedName) []v1alpha1.ReleasedMachine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.groups[name])
}

// reported forgets Machines that the status of their group has.
func (r *releases) reported(name types.NamespacedName, all []v1alpha1.ReleasedMachine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.groups[name] = group.Unreported(r.groups[name], all); len(r.groups[name]) == 0 {
		delete(r.groups, name)
	}
}

func (r *releases) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.groups, name)
}
