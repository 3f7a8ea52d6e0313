package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// interval between two reads while a report is waited for.
const interval = time.Second

// A Run carries a handover out, or the way back.
type Run struct {
	// Client of the control cluster, which has the objects of both systems.
	Client client.Client
	// Target is the cluster of the Nodes.
	Target client.Client

	// System is the other side.
	System    System
	Namespace string
	// From is the MachineDeployment of the other side, and To that of Drover. The way back knows To.
	From, To string
	// Differences of the class and the VMs are accepted.
	Differences bool
	// Confirmed means that the user knows that the controllers of machine-controller-manager are stopped, where no Lease shows it.
	Confirmed bool
	// Undo is the way back.
	Undo bool
	// Timeout of each wait.
	Timeout time.Duration
	// Log is called with each action.
	Log func(format string, args ...any)

	// elsewhere are the Deployments of other namespaces, once they were read.
	elsewhere       []Workload
	lookedElsewhere bool
	// every is the interval of the reads, the constant interval if it is zero, and clock is time.Now if it is nil.
	every time.Duration
	clock func() time.Time
}

func (r *Run) now() time.Time {
	if r.clock != nil {
		return r.clock()
	}
	return time.Now()
}

func (r *Run) direction() Direction {
	if r.Undo {
		return GiveBack
	}
	return Take
}

// Preview logs all steps, and changes nothing.
func (r *Run) Preview(ctx context.Context) error {
	w, err := r.read(ctx)
	if err != nil {
		return err
	}
	p, err := r.direction().Preview(w)
	if err != nil {
		return err
	}
	if len(p.Steps) == 0 && r.Undo {
		return nothing(p)
	}
	r.note(p.Notes)
	for _, s := range p.Steps {
		r.Log("%s", s.Text)
	}
	r.Log("%d steps. Nothing was changed", len(p.Steps))
	return nil
}

// nothing is the error of a way back that has no steps: the user may have named another MachineDeployment.
func nothing(p Plan) error { return errors.New(strings.Join(p.Notes, "\n")) }

func (r *Run) note(notes []string) {
	for _, n := range notes {
		r.Log("note: %s", n)
	}
}

// Do runs all steps. It may be called again after an error, and then plans from the current objects.
func (r *Run) Do(ctx context.Context) error {
	for first := true; ; first = false {
		p, err := r.await(ctx)
		if err != nil {
			return err
		}
		switch {
		case first && len(p.Steps) == 0 && r.Undo:
			return nothing(p)
		case first:
			r.note(p.Notes)
		}
		if len(p.Steps) == 0 {
			r.Log("done")
			return nil
		}
		for _, s := range p.Steps {
			switch err := r.carryOut(ctx, s); {
			case kerrors.IsConflict(err) || kerrors.IsAlreadyExists(err):
				// Another client wrote: the next plan reads it.
			case err != nil:
				return fmt.Errorf("cannot %s: %w", s.Text, err)
			default:
				r.Log("%s", s.Text)
			}
		}
	}
}

// await returns the next plan that has steps, or that has neither steps nor waits.
func (r *Run) await(ctx context.Context) (Plan, error) {
	var p Plan
	err := wait.PollUntilContextTimeout(ctx, cmp.Or(r.every, interval), r.Timeout, true, func(ctx context.Context) (bool, error) {
		w, err := r.read(ctx)
		if err != nil {
			return false, err
		}
		p, err = r.direction().Next(w)
		return len(p.Waits) == 0, err
	})
	if errors.Is(err, context.DeadlineExceeded) && len(p.Waits) > 0 {
		return p, fmt.Errorf("waited for %s, and no step was taken:\n  %s\nRun the command again, or take back what was done by --undo", r.Timeout, strings.Join(p.Waits, "\n  "))
	}
	return p, err
}

// carryOut writes one object, unless it changed since it was read.
func (r *Run) carryOut(ctx context.Context, s Step) error {
	o, c := s.Object.DeepCopy(), r.Client
	if o.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Node") {
		c = r.Target
	}
	switch s.Verb {
	case Create:
		return c.Create(ctx, o)
	case Patch:
		return c.Patch(ctx, o, client.MergeFromWithOptions(s.Before, client.MergeFromWithOptimisticLock{}))
	}
	return r.remove(ctx, o)
}

// remove deletes an object whose controller is paused, and its finalizers.
func (r *Run) remove(ctx context.Context, o *unstructured.Unstructured) error {
	uid := o.GetUID()
	if o.GetDeletionTimestamp() == nil {
		if err := r.Client.Delete(ctx, o, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	is := &unstructured.Unstructured{}
	is.SetGroupVersionKind(o.GroupVersionKind())
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(o), is); err != nil || is.GetUID() != uid || is.GetDeletionTimestamp() == nil {
		return client.IgnoreNotFound(err)
	}
	before := is.DeepCopy()
	is.SetFinalizers(nil)
	return client.IgnoreNotFound(r.Client.Patch(ctx, is, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}
