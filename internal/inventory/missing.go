package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/inventory/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/text"
)

const (
	// maxProven is the maximum number of newly listed claims that one look reads. Later looks read
	// and remember the remaining ones.
	maxProven = 200
	// maxText is the length in bytes to which texts of the cloud are shortened.
	maxText = 256
)

// toProve returns the claims that the look has to read: listed would be remembered, unlisted would
// be missing.
func (l Look) toProve(before v1alpha1.InventoryObservation, p v1alpha1.InventoryParameters) (listed, unlisted []v1alpha1.Claim) {
	was, there := recall(before.Remembered), l.listed()
	for _, name := range slices.Sorted(maps.Keys(l.Claims)) {
		switch {
		case slices.Contains(p.Ignore, name):
		case there[name] && !was.has(name) && len(listed) < maxProven && len(was)+len(listed) < v1alpha1.MaxRemembered:
			listed = append(listed, l.Claims[name])
		case !there[name] && was.has(name):
			unlisted = append(unlisted, l.Claims[name])
		}
	}
	// Claims that are missing already come first, so that the limit never removes one.
	missing := map[string]bool{}
	for _, m := range before.Missing {
		missing[m.ExternalName] = true
	}
	first := slices.DeleteFunc(slices.Clone(unlisted), func(c v1alpha1.Claim) bool { return !missing[c.ExternalName] })
	rest := slices.DeleteFunc(unlisted, func(c v1alpha1.Claim) bool { return missing[c.ExternalName] })
	unlisted = append(first, rest...)
	return listed, unlisted[:min(len(unlisted), v1alpha1.MaxListed)]
}

func (l Look) listed() map[string]bool {
	there := make(map[string]bool, len(l.VMs))
	for _, vm := range l.VMs {
		there[vm.ExternalName] = true
	}
	return there
}

// remember returns the listed VMs that a VM resource still claims.
func (l Look) remember(before v1alpha1.InventoryObservation, claimed map[string]VM) memory {
	was, now := recall(before.Remembered), memory{}
	for name := range l.Claims {
		if ours, read := l.Ours[name]; was.has(name) && (ours || !read) {
			now.add(name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(claimed)) {
		if l.Ours[name] {
			now.add(name)
		}
	}
	return now
}

// miss sets which VMs are missing: claimed, listed before by this inventory, not listed now, not
// found by their names, and in this account and place. A list that lacks more such VMs than it has
// is probably incomplete, or from another account: then no VM is missing.
func (l Look) miss(out *v1alpha1.InventoryObservation, before v1alpha1.InventoryObservation, p v1alpha1.InventoryParameters, claimed map[string]VM, remembered memory) {
	was, there := recall(before.Remembered), l.listed()
	seen, unlisted := 0, 0
	for name := range l.Claims {
		ours, read := l.Ours[name]
		switch {
		case read && !ours || slices.Contains(p.Ignore, name):
		case there[name]:
			// A VM that is listed for the first time counts, as it does for the next look.
			if _, is := claimed[name]; is && remembered.has(name) {
				seen++
			}
		case was.has(name) && !l.Found[name]:
			unlisted++
		}
	}
	if unlisted > seen {
		out.MissingDoubt = fmt.Sprintf("the cloud listed %d of %d claimed VMs that it should list: too few to conclude that the others are lost", seen, seen+unlisted)
		return
	}
	since := map[string]v1alpha1.MissingVirtualMachine{}
	for _, m := range before.Missing {
		since[m.ExternalName] = m
	}
	for name, c := range l.Claims {
		if there[name] || !was.has(name) || l.Found[name] || !l.Ours[name] || slices.Contains(p.Ignore, name) {
			continue
		}
		m := v1alpha1.MissingVirtualMachine{Claim: c, FirstMissed: l.at()}
		if w, ok := since[name]; ok && w.Claim == c {
			m.FirstMissed = l.notAhead(w.FirstMissed)
			m.ConfirmedAt = l.confirm(m.FirstMissed, w.ConfirmedAt, p.Interval.Duration)
		}
		out.Missing = append(out.Missing, m)
	}
	slices.SortFunc(out.Missing, func(a, b v1alpha1.MissingVirtualMachine) int {
		return cmp.Or(a.FirstMissed.Compare(b.FirstMissed.Time), cmp.Compare(a.ExternalName, b.ExternalName))
	})
	out.Missing = out.Missing[:min(len(out.Missing), v1alpha1.MaxListed)]
}

// confirm returns when an observation was confirmed, nil if it was made first too short a time ago.
func (l Look) confirm(first metav1.Time, was *metav1.Time, after time.Duration) *metav1.Time {
	due := first.Add(after)
	switch at := l.at(); {
	case was != nil && !was.Time.Before(due):
		return was
	case !l.At.Before(due) && at.After(first.Time):
		return &at
	}
	return nil
}

// states returns the states of claimed VMs that do not run.
func (l Look) states(before []v1alpha1.VirtualMachineState, p v1alpha1.InventoryParameters, claimed map[string]VM, remembered memory) []v1alpha1.VirtualMachineState {
	since := map[string]v1alpha1.VirtualMachineState{}
	for _, s := range before {
		since[s.ExternalName] = s
	}
	var out []v1alpha1.VirtualMachineState
	for name, vm := range claimed {
		if (vm.State != StateStopped && vm.State != StateFailed) || !remembered.has(name) {
			continue
		}
		s := v1alpha1.VirtualMachineState{Claim: l.Claims[name], State: string(vm.State), Text: text.Shorten(vm.StateText, maxText), FirstSeen: l.at()}
		if w, ok := since[name]; ok && w.Claim == s.Claim && w.State == s.State {
			s.FirstSeen, s.ConfirmedAt = w.FirstSeen, l.confirm(w.FirstSeen, w.ConfirmedAt, p.Interval.Duration)
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b v1alpha1.VirtualMachineState) int {
		return cmp.Or(a.FirstSeen.Compare(b.FirstSeen.Time), cmp.Compare(a.ExternalName, b.ExternalName))
	})
	return out[:min(len(out), v1alpha1.MaxListed)]
}

// listResources sets which resources beside the VMs are not in use. If their list failed, they stay
// as before.
func (l Look) listResources(out *v1alpha1.InventoryObservation, before v1alpha1.InventoryObservation, p v1alpha1.InventoryParameters) {
	if !l.lists {
		return
	}
	if l.ResourcesProblem != "" {
		out.Resources, out.ResourceCount, out.ResourcesProblem = before.Resources, before.ResourceCount, l.ResourcesProblem
		return
	}
	type key struct{ kind, id string }
	since := map[key]v1alpha1.UnusedResource{}
	for _, r := range before.Resources {
		since[key{r.Type, r.ID}] = r
	}
	now := map[key]v1alpha1.UnusedResource{}
	for _, r := range l.Resources {
		if r.AttachedTo != "" || r.ID == "" || !slices.Contains(p.Installations, r.Tags[machinev1alpha1.TagInstallation]) {
			continue
		}
		u := v1alpha1.UnusedResource{
			Type: r.Type, ID: r.ID, Installation: r.Tags[machinev1alpha1.TagInstallation],
			Namespace: r.Tags[machinev1alpha1.TagNamespace], Machine: r.Tags[machinev1alpha1.TagMachine], FirstSeen: l.at(),
		}
		if !r.CreatedAt.IsZero() {
			created := metav1.NewTime(r.CreatedAt.Truncate(time.Second).UTC())
			u.CreatedAt = &created
		}
		if w, ok := since[key{r.Type, r.ID}]; ok {
			u.FirstSeen, u.ConfirmedAt = w.FirstSeen, l.confirm(w.FirstSeen, w.ConfirmedAt, p.ConfirmAfter.Duration)
		}
		now[key{r.Type, r.ID}] = u
	}
	out.ResourceCount = int32(len(now))
	out.Resources = slices.SortedFunc(maps.Values(now), func(a, b v1alpha1.UnusedResource) int {
		return cmp.Or(a.FirstSeen.Compare(b.FirstSeen.Time), cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
	})
	out.Resources = out.Resources[:min(len(out.Resources), v1alpha1.MaxListed)]
}
