package drain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"
	kubectldrain "k8s.io/kubectl/pkg/drain"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

const (
	// parallel is the number of concurrent calls of one pass.
	parallel = 8
	// passTime bounds a pass. Pods that it did not reach are left to the next pass.
	passTime = 20 * time.Second
)

// cordon keeps new pods off the Node.
func cordon(ctx context.Context, kube kubernetes.Interface, node *corev1.Node) error {
	c := kubectldrain.NewCordonHelper(node)
	if !c.UpdateIfRequired(true) {
		return nil
	}
	err, patchErr := c.PatchOrReplaceWithContext(ctx, kube, false)
	return errors.Join(err, patchErr)
}

// podsOf lists the pods that a drain must remove from the Node, as kubectl drain --ignore-daemonsets
// --delete-emptydir-data --force does.
func podsOf(ctx context.Context, kube kubernetes.Interface, node string) ([]corev1.Pod, error) {
	helper := kubectldrain.Helper{
		Ctx: ctx, Client: kube, GracePeriodSeconds: -1,
		IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, Force: true,
	}
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	return list.Pods(), nil
}

// readPod reads the fields of a pod that a drain needs.
func readPod(p *corev1.Pod) pod {
	out := pod{
		name:     types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()},
		uid:      p.GetUID(),
		finished: p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed,
	}
	if p.Spec.Priority != nil {
		out.priority = *p.Spec.Priority
	}
	return out
}

// A crew does one pass over the pods of a Node.
type crew struct {
	kube kubernetes.Interface
	now  time.Time
	// explain returns why a budget does not allow the eviction of a pod.
	explain func(ctx context.Context, p pod, err error) string

	mu       sync.Mutex
	left     Remaining
	attempts map[types.UID]attempt
}

// work carries out the steps, and collects the pods that remain. Pods with volumes are evicted one after
// another, until one of them terminates.
func (c *crew) work(ctx context.Context, steps []step) error {
	ctx, cancel := context.WithTimeout(ctx, passTime)
	defer cancel()
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	var turns []step
	for _, s := range steps {
		if s.turn && s.do == evict {
			turns = append(turns, s)
			continue
		}
		group.Go(func() error { _, err := c.one(gctx, s); return err })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	moving := false
	for _, s := range turns {
		if moving {
			s.do, s.reason, s.cause = hold, reasonTurn, ""
		}
		goes, err := c.one(ctx, s)
		if err != nil {
			return err
		}
		moving = moving || goes
	}
	return nil
}

// one carries out a step. It reports whether the pod is being deleted.
func (c *crew) one(ctx context.Context, s step) (goes bool, err error) {
	if ctx.Err() != nil {
		c.remains(s.pod, stay{reason: reasonLater})
		return false, nil //nolint:nilerr // The pod remains for the next pass.
	}
	reason, err := c.do(ctx, s)
	var status kerrors.APIStatus
	switch {
	case kerrors.IsNotFound(err): // It is gone.
		return true, nil
	case kerrors.IsConflict(err): // It changed, or another pod has its name: the next pass reads it again.
		c.remains(s.pod, stay{reason: reasonTerminating})
		return true, nil
	case err == nil:
		if reason != "" {
			c.remains(s.pod, stay{reason: reason, cause: s.causeOf()})
		}
		return reason == reasonTerminating, nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		c.remains(s.pod, stay{reason: reasonLater})
		return false, nil //nolint:nilerr // The pod remains for the next pass.
	case !errors.As(err, &status) || kerrors.IsUnauthorized(err):
		return false, err
	}
	why := stay{reason: blockedBy(err)}
	if s.do == evict {
		if isBudget(err) {
			why.reason = c.explain(ctx, s.pod, err)
		}
		switch {
		case isRefused(err):
			why = stay{reason: blockedBy(err), cause: machinev1alpha1.DrainEvictionRefused}
		case isUnknown(err) && why.reason == blockedBy(err):
			why.cause = machinev1alpha1.DrainEvictionFailed
		}
		c.refused(s.pod, why, err)
	}
	c.remains(s.pod, why)
	return false, nil
}

// causeOf returns the cause of a pod that is held since its last eviction was refused.
func (s step) causeOf() machinev1alpha1.DrainCause {
	if s.do == hold {
		return s.cause
	}
	return ""
}

func (c *crew) do(ctx context.Context, s step) (reason string, err error) {
	// A pod of the same name may run elsewhere by now.
	opts := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.uid))}
	if s.grace != nil {
		seconds := int64(s.grace.Seconds())
		opts.GracePeriodSeconds = &seconds
	}
	pods := c.kube.CoreV1().Pods(s.name.Namespace)
	switch s.do {
	case evict:
		return reasonTerminating, c.kube.PolicyV1().Evictions(s.name.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: s.name.Namespace, Name: s.name.Name},
			DeleteOptions: &opts,
		})
	case remove, kill:
		return reasonTerminating, pods.Delete(ctx, s.name.Name, opts)
	case wait:
		return reasonTerminating, nil
	case hold:
		return s.reason, nil
	case ignore:
	}
	return "", nil
}

func (c *crew) remains(p pod, why stay) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left[p.name] = why
}

// refused records a refusal, so that the eviction is retried later, and only maxRefused times.
func (c *crew) refused(p pod, why stay, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := attempt{refused: p.refused, tried: c.now, reason: why.reason, cause: why.cause}
	if isBudget(err) || !kerrors.IsTooManyRequests(err) {
		a.refused++
	}
	c.attempts[p.uid] = a
}

// isRefused reports whether an admission webhook or policy refuses an eviction, or Drover lacks the right: time does not
// help.
func isRefused(err error) bool {
	return kerrors.HasStatusCause(err, target.CauseAdmission) || kerrors.IsForbidden(err) && !kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// isUnknown reports whether blockedBy has only the error to report.
func isUnknown(err error) bool {
	return !kerrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) && !kerrors.IsTooManyRequests(err) && !kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func isBudget(err error) bool {
	return kerrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) || kerrors.IsInternalError(err)
}

// blockedBy returns why the API server refused an eviction. The text is stable while the reason is the same.
func blockedBy(err error) string {
	switch {
	case kerrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
		cause, _ := kerrors.StatusCause(err, policyv1.DisruptionBudgetCause)
		return strings.TrimSuffix(reasonBudgetPrefix+": "+cause.Message, ": ")
	case kerrors.IsTooManyRequests(err):
		return reasonBusy
	case kerrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return reasonNamespace
	}
	return fmt.Sprintf("cannot be evicted: %v", err)
}
