package vm

import (
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// A provider observes a VM when it has created it, and then again after its poll interval, which is
// 10 minutes at most clouds. Until then it reports neither that the VM runs nor that it was
// stopped.
const (
	// lookAfter is the time that a VM may take to run before its provider is requested to observe
	// it.
	lookAfter = 20 * time.Second
	// lookEvery is the shortest interval between two requests. Each costs an API call of the cloud,
	// so the interval grows with the time that the VM has waited, up to lookRarely, which is as
	// rare as the provider's own polls.
	lookEvery, lookRarely = 30 * time.Second, 10 * time.Minute
	// retryAfter is the time that a provider may take to retry a refused creation. upjet waits for
	// its poll interval if the failed creation took longer than its pause: it observes the VM while
	// the creation runs, and a second identical failure does not requeue the VM resource
	// (pkg/controller/external_async_tfpluginsdk.go).
	retryAfter = time.Minute
	// retryThrottledAfter is the time that a provider may take to retry a throttled creation. A cloud that
	// throttles may count each call, so a request comes later.
	retryThrottledAfter = 2 * time.Minute
)

// requestLook requests that the provider observe a VM that was created and does not run, whose
// creation was refused and is not retried, or whose Node is not Ready. A changed annotation of the
// VM resource triggers the observation. It returns the time until the next request is due, 0 if
// none is.
func (d *Desired) requestLook(o Observed) time.Duration {
	return requestSince(o.waitsSince(d.Word), o.Now, d.VM)
}

// requestRetries requests that the providers of companions whose creation was refused try it again. Until then, their
// VM waits for them. LookAgain is then the time until the next request is due.
func (d *Desired) requestRetries(b *Binding, o Observed) {
	if o.Machine.Status.Phase == machinev1alpha1.MachineFailed || o.Machine.DeletionTimestamp != nil {
		return
	}
	for name, there := range o.Companions {
		refusal := providerError(conditionsOf(there.Unstructured))
		if refusal == "" || there.GetDeletionTimestamp() != nil || isCreateUnknown(there) || b.isCompanionReady(name, o) {
			continue
		}
		code := fn.ErrorCode("")
		if b != nil {
			code = b.classify(refusal)
		}
		if next := requestSince(retryDue(there, code), o.Now, d.Companions[name]); next > 0 && (d.Word.LookAgain == 0 || next < d.Word.LookAgain) {
			d.Word.LookAgain = next
		}
	}
}

// retryDue returns the time from which a request to retry a refused creation is useful, zero if none was tried.
func retryDue(there plan.Object, code fn.ErrorCode) time.Time {
	tried := meta.GetExternalCreatePending(there)
	switch {
	case tried.IsZero():
		return time.Time{}
	case code == fn.ErrorThrottled:
		return tried.Add(retryThrottledAfter)
	}
	return tried.Add(retryAfter)
}

// requestSince requests an observation of a resource if one is due, by the time from which requests are useful. It
// returns the time until the next one is due, 0 if that time is zero.
func requestSince(since, now time.Time, desired *unstructured.Unstructured) time.Duration {
	if since.IsZero() || desired == nil {
		return 0
	}
	due := since
	if last, err := time.Parse(time.RFC3339, desired.GetAnnotations()[meta.AnnotationKeyReconcileRequestedAt]); err == nil && !last.Before(since) {
		due = last.Add(pause(last.Sub(since)))
	}
	if wait := due.Sub(now); wait > 0 {
		return wait
	}
	meta.SetReconcileRequest(desired, now.UTC().Format(time.RFC3339))
	return pause(now.Sub(since))
}

// pause returns the interval until the next request, by the time between the earliest possible
// request and the last one.
func pause(waited time.Duration) time.Duration { return min(max(lookEvery, waited), lookRarely) }

// waitsSince returns the time from which a request is useful, zero if none is. A provider is not asked about a VM for
// which an inventory has a verdict.
func (o Observed) waitsSince(word plan.VM) time.Time {
	created := meta.GetExternalCreateSucceeded(*o.VM)
	switch {
	case o.Machine.Status.Phase != machinev1alpha1.MachineFailed && word.State == plan.VMCreating && word.ProviderID == "" &&
		word.Message != "" && !meta.GetExternalCreatePending(*o.VM).IsZero():
		return retryDue(*o.VM, fn.ErrorCode(word.ErrorCode))
	case o.Machine.Status.Phase == machinev1alpha1.MachineFailed || word.ProviderID == "" || word.Message != "" || word.Verdict != nil:
		return time.Time{}
	case word.State == plan.VMCreating && !created.IsZero():
		return created.Add(lookAfter)
	case word.State == plan.VMRunning && plan.HasRun(o.Machine.Status):
		return o.notReadySince()
	}
	return time.Time{}
}

// notReadySince returns when Drover observed that the Node is not Ready, zero if it is Ready or cannot be observed.
func (o Observed) notReadySince() time.Time {
	since := o.Node.NotReadySince()
	if o.Node.Error != "" || o.Node.NodeName == "" || since == nil {
		return time.Time{}
	}
	return since.Time
}
