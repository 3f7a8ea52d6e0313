package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
)

// What holds a rollout.
const (
	byWindow   = "window"
	byApproval = "approval"
	byWave     = "wave"
)

var holds = []string{byWindow, byApproval, byWave}

// hold begins a rollout, and waits until it is held. The returned function deletes what else was created for that.
func (s scenario) hold(ctx context.Context, f kit.Fleet, md *v1alpha1.MachineDeployment) (end func() error, err error) {
	end = func() error { return nil }
	before, reason := md.DeepCopy(), ""
	switch s.by {
	case byWindow:
		// It opens in half a day.
		at := time.Now().UTC().Add(12 * time.Hour)
		md.Spec.Rollout.Windows = []v1alpha1.TimeWindow{{Schedule: fmt.Sprintf("0 %d * * *", at.Hour()), Duration: metav1.Duration{Duration: time.Hour}}}
		reason = v1alpha1.ReasonOutsideWindow
	case byApproval:
		md.Spec.Strategy.RollingUpdate.Steps = []v1alpha1.RolloutStep{{Updated: intstr.FromInt32(1), Approval: v1alpha1.ApprovalManual}}
		reason = v1alpha1.ReasonAwaitingApproval
	case byWave:
		if end, err = earlierWave(ctx, f); err != nil {
			return nil, err
		}
		reason = v1alpha1.ReasonAwaitingWave
	}
	md.Spec.Template.Spec.Version = kit.NewVersion
	if err := f.Client.Patch(ctx, md, client.MergeFrom(before)); err != nil {
		return nil, errors.Join(err, end())
	}
	return end, until(ctx, func() (bool, string) {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil {
			return false, err.Error()
		}
		c := meta.FindStatusCondition(md.Status.Conditions, v1alpha1.ConditionProgressing)
		return md.Status.ObservedGeneration == md.Generation && c != nil && c.Reason == reason, fmt.Sprintf("%+v", c)
	})
}

// earlierWave is a RolloutPolicy with the wave of a MachineDeployment whose rollout is paused. It holds all others of the namespace.
func earlierWave(ctx context.Context, f kit.Fleet) (end func() error, err error) {
	policy := &v1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}
	namespaces := []clusterv1alpha1.NamespacePattern{clusterv1alpha1.NamespacePattern(f.Namespace)}
	policy.Spec.Waves = []v1alpha1.RolloutWave{
		{Name: "first", Namespaces: namespaces, MatchLabels: map[string]v1alpha1.LabelValue{"wave": "first"}},
		{Name: "second", Namespaces: namespaces},
	}
	first := f.Deployment("first", 1, 1, 0)
	first.Labels = map[string]string{"wave": "first"}
	end = func() error { return errors.Join(f.Client.Delete(ctx, policy), remove(ctx, f, first)) }
	if err := create(ctx, f, first); err != nil {
		return nil, err
	}
	before := first.DeepCopy()
	first.Spec.Paused, first.Spec.Template.Spec.Version = true, kit.NewVersion
	if err := f.Client.Patch(ctx, first, client.MergeFrom(before)); err != nil {
		return nil, err
	}
	return end, f.Client.Create(ctx, policy)
}
