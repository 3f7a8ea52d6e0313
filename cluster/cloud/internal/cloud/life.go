package cloud

import (
	"time"

	"github.com/drover-dev/drover/internal/localcloud"
)

// outcome of advance.
type outcome struct {
	// changed: the record is not what it was.
	changed bool
	// gone: the VM is no more.
	gone bool
	// next is when something will happen by itself; zero if never.
	next time.Time
}

// advance takes a VM to where it is at a time, over as many steps as that takes:
// a cloud that was stopped catches up.
func advance(r Record, now time.Time) (Record, outcome) {
	var o outcome
	for {
		step, at := pending(&r)
		if step == nil {
			return r, o
		}
		if now.Before(at) {
			o.next = at
			return r, o
		}
		o.changed = true
		if step(&r) {
			o.gone = true
			return r, o
		}
	}
}

// pending is the step that a VM takes next by itself, and when. The step says
// whether it is the last.
func pending(r *Record) (step func(*Record) bool, at time.Time) {
	switch r.VM.State {
	case localcloud.StatePending:
		if r.FailAt != nil {
			return fail, *r.FailAt
		}
		return powerOn, r.RunAt
	case localcloud.StateRunning:
		if !r.Booted && !r.NeverBoots {
			return boot, r.BootAt
		}
	case localcloud.StateTerminating:
		return func(*Record) bool { return true }, *r.GoneAt
	}
	return nil, time.Time{}
}

func fail(r *Record) bool {
	r.VM.State, r.VM.Error = localcloud.StateFailed, r.Failure
	return false
}

func powerOn(r *Record) bool {
	r.VM.State, r.VM.Addresses = localcloud.StateRunning, addresses(r)
	return false
}

func boot(r *Record) bool {
	r.Booted = true
	return false
}

// terminate starts the deletion of a VM.
func terminate(r Record, goneAt time.Time) Record {
	if r.VM.State != localcloud.StateTerminating {
		r.VM.State, r.GoneAt = localcloud.StateTerminating, &goneAt
	}
	return r
}
