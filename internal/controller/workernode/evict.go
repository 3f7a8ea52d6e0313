package workernode

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// Reasons that a pod is still there.
const (
	reasonTerminating  = v1alpha1.ReasonPodTerminating
	reasonNamespace    = "its namespace is being deleted"
	reasonBusy         = "the API server asks to evict it later"
	reasonBudgetPrefix = "its PodDisruptionBudget does not allow its eviction"
)

// cordon keeps new pods away.
func cordon(ctx context.Context, kube kubernetes.Interface, node *corev1.Node) error {
	c := drain.NewCordonHelper(node)
	if !c.UpdateIfRequired(true) {
		return nil
	}
	err, patchErr := c.PatchOrReplaceWithContext(ctx, kube, false)
	return errors.Join(err, patchErr)
}

// podsOf lists what a drain must remove from the Node, as kubectl drain
// --ignore-daemonsets --delete-emptydir-data --force does.
func podsOf(ctx context.Context, kube kubernetes.Interface, node string) ([]pod, error) {
	helper := drain.Helper{
		Ctx: ctx, Client: kube, GracePeriodSeconds: -1,
		IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, Force: true,
	}
	list, errs := helper.GetPodsForDeletion(node)
	if len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	var out []pod
	for _, p := range list.Pods() {
		item := pod{name: types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()}, uid: p.GetUID()}
		if t := p.GetDeletionTimestamp(); t != nil {
			item.gone = t.Time // The API server adds the grace period to it.
		}
		out = append(out, item)
	}
	return out, nil
}

// act does one pass over the pods of a Node, and returns those that remain.
func act(ctx context.Context, kube kubernetes.Interface, pass drainPass, pods []pod) (remaining, error) {
	left := remaining{}
	for _, p := range pods {
		reason, err := actOn(ctx, kube, pass.decide(p), p)
		switch {
		case kerrors.IsNotFound(err): // It is gone.
		case kerrors.IsConflict(err): // It changed, or another has its name: the next pass sees.
			left[p.name] = reasonTerminating
		case err != nil:
			var status kerrors.APIStatus
			if !errors.As(err, &status) || kerrors.IsUnauthorized(err) {
				return left, err
			}
			left[p.name] = blockedBy(err)
		case reason != "":
			left[p.name] = reason
		}
	}
	return left, nil
}

func actOn(ctx context.Context, kube kubernetes.Interface, what action, p pod) (reason string, err error) {
	// A pod of the same name may have come up elsewhere by now.
	opts := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.uid))}
	switch what {
	case evict:
		return reasonTerminating, kube.PolicyV1().Evictions(p.name.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: p.name.Namespace, Name: p.name.Name},
			DeleteOptions: &opts,
		})
	case remove:
		return reasonTerminating, kube.CoreV1().Pods(p.name.Namespace).Delete(ctx, p.name.Name, opts)
	case kill:
		opts.GracePeriodSeconds = new(int64)
		return reasonTerminating, kube.CoreV1().Pods(p.name.Namespace).Delete(ctx, p.name.Name, opts)
	case wait:
		return reasonTerminating, nil
	case ignore:
	}
	return "", nil
}

// blockedBy says in words that do not change while nothing changes why the API
// server refused an eviction.
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

// again is when the next pass is worth its calls: soon while pods terminate, later
// while others must move first.
func (r remaining) again() time.Duration {
	const soon, later = 2 * time.Second, 5 * time.Second
	for _, reason := range r {
		if reason == reasonTerminating {
			return soon
		}
	}
	return later
}
