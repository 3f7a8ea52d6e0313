package vm

import (
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// A provider looks at a VM when it created it, and then again after its poll interval, which is 10
// minutes at most clouds. Until then it reports neither that the VM runs nor that it was stopped.
const (
	// lookAfter is how long a VM may take to run before its provider is asked to look.
	lookAfter = 20 * time.Second
	// lookEvery is the time between two requests at least. Each costs a call of the cloud, so that
	// they become as rare as the provider looks by itself: one that waits for twice as long has
	// twice the time between them.
	lookEvery, lookRarely = 30 * time.Second, 10 * time.Minute
	// retryAfter is how long a provider may take to try a creation again that was refused. upjet
	// takes its poll interval if the creation before took longer to fail than its pause: it looks
	// while the creation runs, and is not woken when that fails as the one before did
	// (pkg/controller/external_async_tfpluginsdk.go).
	retryAfter = time.Minute
)

// requestLook has the provider look at a VM that is created and not running, that it was refused
// and does not ask for again, or whose Node is not Ready: it looks at each VM resource whose annotations change. It returns how long it
// takes until the next request is due, 0 if none is.
func (d *Desired) requestLook(o Observed) time.Duration {
	since := o.waitsSince(d.Word)
	if since.IsZero() {
		return 0
	}
	due := since
	if last, err := time.Parse(time.RFC3339, o.VM.GetAnnotations()[meta.AnnotationKeyReconcileRequestedAt]); err == nil && !last.Before(since) {
		due = last.Add(pause(last.Sub(since)))
	}
	if wait := due.Sub(o.Now); wait > 0 {
		return wait
	}
	meta.SetReconcileRequest(d.VM, o.Now.UTC().Format(time.RFC3339))
	return pause(o.Now.Sub(since))
}

// pause after a request that came so long after the first could.
func pause(waited time.Duration) time.Duration { return min(max(lookEvery, waited), lookRarely) }

// waitsSince is since when a look would help, zero if none would. A provider that is throttled
// is left alone.
func (o Observed) waitsSince(word plan.VM) time.Time {
	created, tried := meta.GetExternalCreateSucceeded(*o.VM), meta.GetExternalCreatePending(*o.VM)
	switch {
	case o.Machine.Status.Phase != machinev1alpha1.MachineFailed && word.State == plan.VMCreating && word.ProviderID == "" &&
		word.Message != "" && word.ErrorCode != string(fn.ErrorThrottled) && !tried.IsZero():
		return tried.Add(retryAfter)
	case o.Machine.Status.Phase == machinev1alpha1.MachineFailed || word.ProviderID == "" || word.Message != "":
		return time.Time{}
	case word.State == plan.VMCreating && !created.IsZero():
		return created.Add(lookAfter)
	case word.State == plan.VMRunning && o.hasRun():
		return o.notReadySince()
	}
	return time.Time{}
}

func (o Observed) hasRun() bool {
	switch o.Machine.Status.Phase {
	case machinev1alpha1.MachineRunning, machinev1alpha1.MachineUpdating, machinev1alpha1.MachineUnknown:
		return true
	default:
		return false
	}
}

// notReadySince is since when the Node is not Ready, zero if it is Ready or cannot be observed.
func (o Observed) notReadySince() time.Time {
	if o.Node.Error != "" || o.Node.NodeName == "" {
		return time.Time{}
	}
	for _, c := range o.Node.Conditions {
		if c.Type == string(corev1.NodeReady) && c.Status != string(corev1.ConditionTrue) && c.LastTransitionTime != nil {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
