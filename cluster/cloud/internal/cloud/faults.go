package cloud

import (
	"path"
	"slices"
	"time"

	"github.com/drover-dev/drover/internal/localcloud"
)

// effects are the effects of faults on one creation.
type effects struct {
	// refuse is the error that the creation returns. No VM is created then.
	refuse error
	// loseAnswer breaks the connection after loseAfter.
	loseAnswer bool
	loseAfter  time.Duration
	neverBoots bool
	bootLater  time.Duration
	// noProviderID hides the provider ID from the VM's kubelet.
	noProviderID bool
	// failure is the error of the VM, failAfter after its creation.
	failure   *localcloud.VMError
	failAfter time.Duration
}

// hit uses up one count of every fault that matches a creation, oldest first, up to and including
// the first that refuses it. It returns the faults that are left.
func hit(faults []localcloud.Fault, name, size string, tags map[string]string) (effects, []localcloud.Fault) {
	var e effects
	left := []localcloud.Fault{}
	for _, f := range faults {
		if e.refuse != nil || !isOf(creation, f) || !matches(f.Match, name, size, tags) {
			left = append(left, f)
			continue
		}
		e.add(f)
		if f.Count--; f.Count > 0 {
			left = append(left, f)
		}
	}
	return e, left
}

func isOf(kinds []string, f localcloud.Fault) bool { return slices.Contains(kinds, string(f.Kind)) }

// hitList uses up one count of the oldest fault that matches a list call, and returns it with the
// faults that are left.
func hitList(faults []localcloud.Fault, o localcloud.ListVMsOptions) (*localcloud.Fault, []localcloud.Fault) {
	for i, f := range faults {
		if !isOf(ofLists, f) || !matches(f.Match, o.Name, "", o.Tags) {
			continue
		}
		left := slices.Clone(faults)
		if left[i].Count--; left[i].Count == 0 {
			left = slices.Delete(left, i, i+1)
		}
		return &f, left
	}
	return nil, faults
}

func (e *effects) add(f localcloud.Fault) {
	delay := time.Duration(f.Delay)
	switch f.Kind {
	case localcloud.FaultCreateFails:
		if delay == 0 {
			e.refuse = localcloud.NewError(f.Code, "%s", f.Message)
			return
		}
		e.failure, e.failAfter = &localcloud.VMError{Code: f.Code, Message: f.Message}, delay
	case localcloud.FaultUnavailable:
		err := localcloud.NewError(localcloud.CodeUnavailable, "%s", f.Message)
		err.RetryAfter = delay
		e.refuse = err
	case localcloud.FaultCreateAnswerLost:
		e.loseAnswer, e.loseAfter = true, delay
	case localcloud.FaultNeverBoots:
		e.neverBoots = true
	case localcloud.FaultSlowBoot:
		e.bootLater += delay
	case localcloud.FaultNoProviderID:
		e.noProviderID = true
	}
}

// withDefaults sets the defaults of empty fields of a fault.
func withDefaults(f localcloud.Fault) localcloud.Fault {
	if f.Count == 0 && !isOf(lasting, f) {
		f.Count = 1
	}
	switch f.Kind {
	case localcloud.FaultCreateFails:
		if f.Code == "" {
			f.Code = localcloud.CodeInternal
		}
		if f.Message == "" {
			f.Message = "the creation failed because a fault was set"
		}
	case localcloud.FaultListFails:
		if f.Code == "" {
			f.Code = localcloud.CodeInternal
		}
		if f.Message == "" {
			f.Message = "the list failed because a fault was set"
		}
	case localcloud.FaultUnavailable:
		if f.Message == "" {
			f.Message = "the service is unavailable because a fault was set"
		}
	}
	return f
}

func matches(m localcloud.FaultMatch, name, size string, tags map[string]string) bool {
	if m.Size != "" && m.Size != size {
		return false
	}
	if m.Name != "" {
		if ok, err := path.Match(m.Name, name); err != nil || !ok {
			return false
		}
	}
	return hasTags(tags, m.Tags)
}

func hasTags(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}
