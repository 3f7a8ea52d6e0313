package inventory

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/inventory/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// soonest is the shortest pause between two looks. If a clock reads slightly too early, a look that
// is due would otherwise repeat in a loop.
const soonest = time.Second

// A Look is the result of one look: a complete list of VMs, and then the external names of all
// managed resources. Because of this order, a VM that is claimed meanwhile counts as claimed.
type Look struct {
	At     time.Time
	VMs    []VM
	Claims map[string]v1alpha1.Claim
	// Ours are the claims, among those that [Look.toProve] names, that belong to the account and
	// the place of the inventory.
	Ours map[string]bool
	// Found are VMs that the list lacks and that the cloud has, such as one whose tags a user
	// removed.
	Found map[string]bool

	Resources        []Resource
	ResourcesProblem string
	// lists means that the cloud lists resources beside VMs.
	lists bool
}

// After returns the observation of an inventory after a look, given the one before it.
func (l Look) After(before v1alpha1.InventoryObservation, p v1alpha1.InventoryParameters) v1alpha1.InventoryObservation {
	was := make(map[string]v1alpha1.UnclaimedVirtualMachine, len(before.Unclaimed))
	for _, u := range before.Unclaimed {
		was[u.ExternalName] = u
	}
	now, claimed := map[string]v1alpha1.UnclaimedVirtualMachine{}, map[string]VM{}
	for _, vm := range l.VMs {
		// A cloud may ignore the filter of the list. The VMs of another installation must not count
		// as those of this one.
		ours := slices.Contains(p.Installations, vm.Tags[machinev1alpha1.TagInstallation])
		if vm.ExternalName == "" || !ours || slices.Contains(p.Ignore, vm.ExternalName) {
			continue
		}
		if _, is := l.Claims[vm.ExternalName]; is {
			claimed[vm.ExternalName] = vm
			continue
		}
		now[vm.ExternalName] = l.note(vm, was[vm.ExternalName], p.ConfirmAfter.Duration)
	}

	out := v1alpha1.InventoryObservation{UnclaimedCount: int32(len(now)), ClaimedCount: int32(len(claimed))}
	for _, u := range now {
		out.Unclaimed = append(out.Unclaimed, u)
	}
	slices.SortFunc(out.Unclaimed, func(a, b v1alpha1.UnclaimedVirtualMachine) int {
		return cmp.Or(a.FirstSeen.Compare(b.FirstSeen.Time), cmp.Compare(a.ExternalName, b.ExternalName))
	})
	if len(out.Unclaimed) > v1alpha1.MaxUnclaimed {
		out.Unclaimed = out.Unclaimed[:v1alpha1.MaxUnclaimed]
	}
	remembered := l.remember(before, claimed)
	out.Remembered = remembered.String()
	l.miss(&out, before, p, claimed, remembered)
	out.States = l.states(before.States, p, claimed, remembered)
	l.listResources(&out, before, p)
	return out
}

// note returns the entry of an unclaimed VM. Was is its entry before, which is zero if it had none.
func (l Look) note(vm VM, was v1alpha1.UnclaimedVirtualMachine, confirmAfter time.Duration) v1alpha1.UnclaimedVirtualMachine {
	at := l.at()
	u := v1alpha1.UnclaimedVirtualMachine{
		ExternalName: vm.ExternalName,
		ProviderID:   vm.ProviderID,
		Name:         vm.Name,
		Installation: vm.Tags[machinev1alpha1.TagInstallation],
		Cluster:      vm.Tags[machinev1alpha1.TagCluster],
		Namespace:    vm.Tags[machinev1alpha1.TagNamespace],
		Machine:      vm.Tags[machinev1alpha1.TagMachine],
		MachineUID:   vm.Tags[machinev1alpha1.TagMachineUID],
		FirstSeen:    at,
	}
	if !vm.CreatedAt.IsZero() {
		created := metav1.NewTime(vm.CreatedAt.Truncate(time.Second).UTC())
		u.CreatedAt = &created
	}
	if was.ExternalName == "" || was.MachineUID != u.MachineUID || was.Name != u.Name || was.Installation != u.Installation {
		return u
	}
	u.FirstSeen = l.notAhead(was.FirstSeen)
	due := u.FirstSeen.Add(confirmAfter)
	switch c := was.ConfirmedAt; {
	case c != nil && !c.Time.Before(due):
		u.ConfirmedAt = c
	case !l.At.Before(due):
		u.ConfirmedAt = &at
	}
	return u
}

// at returns the time of the look in the precision of the API server, a second. It is rounded up,
// so that no entry is older than its look.
func (l Look) at() metav1.Time {
	return metav1.NewTime(l.At.Add(time.Second - time.Nanosecond).Truncate(time.Second).UTC())
}

// notAhead returns the time of an earlier look. One that is ahead of the clock, which jumped, counts as now: otherwise
// nothing would be confirmed before the clock arrives there.
func (l Look) notAhead(t metav1.Time) metav1.Time {
	if at := l.at(); t.After(at.Time) {
		return at
	}
	return t
}

// next returns the time until the next look: the interval, or less if an entry is due to be
// confirmed.
func next(now time.Time, o v1alpha1.InventoryObservation, p v1alpha1.InventoryParameters) time.Duration {
	d := p.Interval.Duration
	for _, u := range o.Unclaimed {
		if u.ConfirmedAt == nil {
			d = min(d, u.FirstSeen.Add(p.ConfirmAfter.Duration).Sub(now))
		}
	}
	for _, m := range o.Missing {
		if m.ConfirmedAt == nil {
			d = min(d, m.FirstMissed.Add(p.Interval.Duration).Sub(now))
		}
	}
	for _, s := range o.States {
		if s.ConfirmedAt == nil {
			d = min(d, s.FirstSeen.Add(p.Interval.Duration).Sub(now))
		}
	}
	return max(d, soonest)
}
