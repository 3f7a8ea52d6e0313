package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

func at(minutes int) *metav1.Time {
	return &metav1.Time{Time: created.Add(time.Duration(minutes) * time.Minute)}
}

// milestones formats those of a status as name@minutes.
func milestones(s *machinev1alpha1.JoinStatus) string {
	if s == nil {
		return "nil"
	}
	var out []string
	for _, m := range s.Milestones {
		out = append(out, string(m.Name)+"@"+m.Time.Sub(created).String())
	}
	return strings.Join(out, " ")
}

func TestMilestonesOfAJoin(t *testing.T) {
	running := plan.VM{State: plan.VMRunning, ProviderID: id}
	with := func(wn *workernode.WorkerNode, change func(*workernode.Observation)) *workernode.WorkerNode {
		change(&wn.Observation)
		return wn
	}
	reached := func(names ...machinev1alpha1.JoinMilestone) *machinev1alpha1.JoinStatus {
		s := &machinev1alpha1.JoinStatus{}
		for _, n := range names {
			s.Milestones = append(s.Milestones, machinev1alpha1.ReachedMilestone{Name: n, Time: *at(0)})
		}
		return s
	}
	cases := map[string]struct {
		reason string
		before *machinev1alpha1.JoinStatus
		phase  machinev1alpha1.MachinePhase
		vm     plan.VM
		node   *workernode.WorkerNode
		want   string
		failed string
	}{
		"NothingYet": {
			"no VM runs", nil, "", plan.VM{State: plan.VMCreating}, nil,
			"nil", "no Node joined within 20m0s: waiting for VM  to run",
		},
		"TheVMRuns": {
			"a write reports it anyway", nil, "", running, nil,
			"VMRunning@1m0s", "last milestone: VMRunning; missing: CertificateRequested, no certificate request with the join token was seen: read the console of the VM",
		},
		"EachIsSetOnce": {
			"the VM was running before", reached(machinev1alpha1.JoinVMRunning), "", running, nil,
			"VMRunning@0s", "last milestone: VMRunning; missing: CertificateRequested, ",
		},
		"ACertificateWaits": {
			"the request has its own time", reached(machinev1alpha1.JoinVMRunning), "", running,
			with(workerNodeThat("", ""), func(o *workernode.Observation) { o.Join.CertificateRequested = at(2) }),
			"VMRunning@0s CertificateRequested@2m0s", "last milestone: CertificateRequested; missing: CertificateApproved, the certificate request was not approved",
		},
		"NoNodeAfterTheCertificate": {
			"the kubelet registered under another name", reached(machinev1alpha1.JoinVMRunning, machinev1alpha1.JoinCertificateRequested), "", running,
			with(workerNodeThat("", ""), func(o *workernode.Observation) { o.Join.CertificateApproved = at(3) }),
			"VMRunning@0s CertificateRequested@0s CertificateApproved@3m0s", "last milestone: CertificateApproved; missing: NodeRegistered, no Node is called m-",
		},
		"AnUnprovenNode": {
			"it has the name, which is what the milestone says", reached(machinev1alpha1.JoinVMRunning), "", running,
			with(workerNodeThat("", ""), func(o *workernode.Observation) { o.Join.Unproven, o.Join.UnprovenSince = "The Node n lacks all", at(4) }),
			"VMRunning@0s NodeRegistered@4m0s", "The Node n lacks all; last milestone: NodeRegistered; missing: ProviderIDMatched, the Node does not have the providerID of the VM",
		},
		"ANodeWithoutRequest": {
			"what was not seen is not missing", nil, "", running,
			with(workerNodeThat("n", "False"), func(o *workernode.Observation) { o.Created, o.HasProviderID = at(5), true }),
			"VMRunning@1m0s NodeRegistered@5m0s ProviderIDMatched@1m0s", "last milestone: ProviderIDMatched; missing: NodeReady, the Node was never Ready: read its conditions",
		},
		"AllAtOnce": {
			"a reconcile may see all of it", nil, "", running,
			with(readyNode(), func(o *workernode.Observation) {
				o.Created, o.HasProviderID = at(5), true
				o.Join = workernode.Join{CertificateRequested: at(3), CertificateApproved: at(4)}
			}),
			"VMRunning@1m0s CertificateRequested@3m0s CertificateApproved@4m0s NodeRegistered@5m0s ProviderIDMatched@1m0s NodeReady@1m0s", "",
		},
		"OfAMachineThatRanBefore": {
			"an upgrade writes no status", nil, machinev1alpha1.MachineRunning, running, readyNode(), "nil", "",
		},
		"WhatWasReachedStays": {
			"the VM is gone", reached(machinev1alpha1.JoinVMRunning, machinev1alpha1.JoinNodeReady), machinev1alpha1.MachineRunning, plan.VM{State: plan.VMLost}, nil,
			"VMRunning@0s NodeReady@0s", "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := phaseIs(tc.phase)
			status.Join = tc.before
			o := Observed{Machine: machine(status), VM: tc.vm, WorkerNode: tc.node}
			if got := milestones(Plan(soon, o).Status.Join); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
			if tc.failed == "" {
				return
			}
			if got := Plan(late, o).Status; got.FailureReason != "JoinTimeout" || !strings.Contains(got.FailureMessage, tc.failed) {
				t.Errorf("%s: failure %s, want %s", tc.reason, got.FailureMessage, tc.failed)
			}
		})
	}
}

func TestAStatusIsNoAuthorityOnAJoin(t *testing.T) {
	forged := phaseIs("Joining")
	forged.Join = &machinev1alpha1.JoinStatus{}
	for _, n := range machinev1alpha1.JoinMilestones() {
		forged.Join.Milestones = append(forged.Join.Milestones, machinev1alpha1.ReachedMilestone{Name: n, Time: *at(0)})
	}
	honest := phaseIs("Joining")
	for _, now := range []time.Time{soon, late} {
		o := Observed{VM: plan.VM{State: plan.VMRunning, ProviderID: id}}
		o.Machine = machine(honest)
		want := Plan(now, o)
		o.Machine = machine(forged)
		got := Plan(now, o)
		if diff := cmp.Diff(want.WorkerNode, got.WorkerNode); diff != "" || want.Ready != got.Ready || want.Status.Phase != got.Status.Phase || want.Status.FailureReason != got.Status.FailureReason {
			t.Errorf("at %s it decides otherwise: %+v\n%s", now, got.Status, diff)
		}
	}
}

func TestWhyANodeIsNotReady(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, message, status, want string
	}{
		"BothAreKnown": {"KubeletNotReady", "cni plugin not initialized", "False", "The Node m is not Ready: KubeletNotReady: cni plugin not initialized"},
		"AReason":      {"KubeletNotReady", "", "False", "The Node m is not Ready: KubeletNotReady"},
		"AMessage":     {"", "starting", "False", "The Node m is not Ready: starting"},
		"Neither":      {"", "", "False", "The Node m is not Ready"},
		"Silent":       {"NodeStatusUnknown", "Kubelet stopped posting node status.", "Unknown", "The Node m stopped reporting: NodeStatusUnknown: Kubelet stopped posting node status."},
		"SilentIsAll":  {"", "", "Unknown", "The Node m stopped reporting"},
	} {
		t.Run(name, func(t *testing.T) {
			wn := workerNodeThat("m", tc.status)
			wn.Observation.Conditions[0].Reason, wn.Observation.Conditions[0].Message = tc.reason, tc.message
			d := Plan(soon, Observed{Machine: machine(phaseIs("Joining")), VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: wn})
			for _, c := range d.Conditions {
				if c.Type == machinev1alpha1.ConditionNodeReady && c.Message != tc.want {
					t.Errorf("got %q, want %q", c.Message, tc.want)
				}
			}
		})
	}
}
