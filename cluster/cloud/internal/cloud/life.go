package cloud

import (
	"time"

	"github.com/drover-dev/drover/internal/localcloud"
)

// outcome of advance.
type outcome struct {
	// changed means that the record differs from before.
	changed bool
	// gone means that the VM is deleted.
	gone bool
	// next is the time of the VM's next step, zero if there is none.
	next time.Time
}

// advance moves a VM to its state at a time, in as many steps as needed: a cloud that was stopped
// catches up.
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

// pending returns the next step of a VM and its time. The step reports whether it is the last one,
// after which the VM is deleted.
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
