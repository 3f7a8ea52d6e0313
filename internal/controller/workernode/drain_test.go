package workernode

import (
	"errors"
	"fmt"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/internal/target"
)

func TestDecideOverAPod(t *testing.T) {
	now := time.Unix(10_000, 0)
	cases := map[string]struct {
		gone      time.Duration // from now, 0 for a pod that is not terminating
		late      bool
		nodeReady bool
		want      action
	}{
		"APodIsEvicted":                              {nodeReady: true, want: evict},
		"OnADeadNodeToo":                             {want: evict},
		"ATerminatingPodIsWaitedFor":                 {gone: -time.Hour, nodeReady: true, want: wait},
		"ButNotOnADeadNode":                          {gone: time.Minute, want: ignore},
		"AfterTheTimeoutAPodIsDeleted":               {late: true, nodeReady: true, want: remove},
		"AfterTheTimeoutItKeepsItsGrace":             {late: true, nodeReady: true, gone: time.Minute, want: wait},
		"AndALittleMore":                             {late: true, nodeReady: true, gone: -killDelay, want: wait},
		"ThenItIsKilled":                             {late: true, nodeReady: true, gone: -killDelay - time.Second, want: kill},
		"WhatSurvivesThatIsHeldByFinalizersAndStays": {late: true, nodeReady: true, gone: -2*killDelay - time.Second, want: ignore},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := pod{}
			if tc.gone != 0 {
				p.gone = now.Add(tc.gone)
			}
			if got := (drainPass{now: now, late: tc.late, nodeReady: tc.nodeReady}).decide(p); got != tc.want {
				t.Errorf("decided to %s, want %s", got, tc.want)
			}
		})
	}
}

func TestDrainStatusNamesTheFirstTenPods(t *testing.T) {
	left := remaining{}
	for i := range 12 {
		left[types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("pod-%02d", 11-i)}] = "reason"
	}
	s := left.status(time.Unix(7, 0))
	if s.Remaining != 12 || len(s.Pods) != 10 || s.Pods[0].Name != "pod-00" || s.Pods[9].Name != "pod-09" || s.StartTime.Unix() != 7 {
		t.Errorf("status %+v", s)
	}
	if (remaining{}).status(time.Unix(7, 0)) != nil {
		t.Error("a drain that is over has a status")
	}
}

func TestNextPassIsSoonWhilePodsTerminate(t *testing.T) {
	if a, b := (remaining{{}: reasonTerminating}).again(), (remaining{{}: "blocked"}).again(); a >= b {
		t.Errorf("%s while pods terminate, %s while they are blocked", a, b)
	}
}

func TestBlockedBy(t *testing.T) {
	budget := kerrors.NewTooManyRequests("no", 0)
	budget.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "web needs 2"}}}
	cases := map[string]struct {
		err  error
		want string
	}{
		"ABudget":                {budget, "its PodDisruptionBudget does not allow its eviction: web needs 2"},
		"ABusyServer":            {kerrors.NewTooManyRequests("later", 1), reasonBusy},
		"ATerminatingNamespace":  {terminatingNamespace(), reasonNamespace},
		"SomethingElseIsToldRaw": {kerrors.NewInternalError(errors.New("two budgets")), "cannot be evicted: Internal error occurred: two budgets"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := blockedBy(tc.err); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func terminatingNamespace() error {
	err := kerrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("unable to create new content"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: "NamespaceTerminating", Message: "namespace is being terminated"})
	return err
}

func TestWhenAWorkerNodeMayGo(t *testing.T) {
	unreachable := &target.Error{Kind: target.Unreachable, Detail: "refused"}
	noSecret := &target.Error{Kind: target.SecretNotFound, Detail: "no Secret"}
	cases := map[string]struct {
		departure
		exists, abandoned, waits bool
	}{
		"WithoutANodeItGoesAtOnce":                          {departure: departure{}},
		"WithANodeItStays":                                  {departure: departure{nodes: 1, hadNode: true}, exists: true},
		"AfterTheTimeoutTheNodeIsStillDeletedFirst":         {departure: departure{nodes: 1, hadNode: true, late: true}, exists: true},
		"ANodeThatCannotBeDeletedIsAbandoned":               {departure: departure{nodes: 1, late: true, gaveUpOn: true}, abandoned: true},
		"AnUnreachableClusterIsWaitedFor":                   {departure: departure{hadNode: true, err: unreachable}, waits: true},
		"AlsoWhenNoNodeWasSeenYet":                          {departure: departure{err: unreachable}, waits: true},
		"ButNotBeyondTheTimeout":                            {departure: departure{hadNode: true, err: unreachable, late: true}, abandoned: true},
		"NorWhenTheDrainIsSkipped":                          {departure: departure{hadNode: true, err: unreachable, skip: true}, abandoned: true},
		"LostCredentialsOfAClusterWithOurNodeAreWaitedFor":  {departure: departure{hadNode: true, err: noSecret}, waits: true},
		"CredentialsThatNeverWorkedAreNot":                  {departure: departure{err: noSecret}},
		"AnErrorOfTheControlClusterSaysNothingOfTheTargets": {departure: departure{err: errors.New("timeout")}, waits: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := tc.verdict()
			if v.exists != tc.exists || (v.abandoned != "") != tc.abandoned || (v.err != nil) != tc.waits {
				t.Errorf("verdict %+v", v)
			}
		})
	}
}
