package nodekeeper

import (
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/workernode"
)

func TestAKubeletsMessageIsSteady(t *testing.T) {
	for name, tc := range map[string]struct{ message, want string }{
		"AsItIs": {
			"container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized",
			"container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized",
		},
		"DurationsChange": {"PLEG is not healthy: pleg was last seen active 3m2.51s ago; threshold is 3m0s", "PLEG is not healthy: pleg was last seen active ... ago; threshold is ..."},
		"TimesChange":     {"failed at 2026-01-01T00:00:00.123Z, again", "failed at ..., again"},
		"OneLine":         {"[a\n\tb \x1b[31mc]", "[a b [31mc]"},
		"Bounded":         {strings.Repeat("é", 400), strings.Repeat("é", 256) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := steady(tc.message); got != tc.want || steady(got) != got && name != "Bounded" {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	n := node("n", corev1.ConditionFalse)
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Message: "not passed on"})
	if c := conditionsIn(n, workernode.Observation{}, start); c[0].Message != "of the kubelet" || c[1].Message != "" {
		t.Errorf("conditions %+v", c)
	}
	if c := conditionsIn(node("n", corev1.ConditionTrue), workernode.Observation{}, start); c[0].Message != "" {
		t.Errorf("conditions %+v: of a Ready Node no message is of use", c)
	}
}

func TestANodeWithTheNameAloneIsReported(t *testing.T) {
	ready := "The Node %s has the name of this Machine's Node and is Ready, but "
	for name, tc := range map[string]struct {
		reason            string
		token, providerID string
		want              string
	}{
		"NoProviderID":          {"Nothing proves that it is of the VM.", "", "", ready + "it has neither the label cluster.drover.dev/join-token nor a providerID: Drover leaves it alone"},
		"AnotherProviderID":     {"It is of another VM.", "", "of-another", ready + "it lacks the label cluster.drover.dev/join-token, and has the providerID of-another, while the VM has " + id + ": Drover leaves it alone"},
		"AnotherLabel":          {"It is of another Machine.", "other", id, ready + "its label cluster.drover.dev/join-token is that of another Machine: Drover leaves it alone"},
		"ProviderIDWithDrovers": {"Drover's own user data has the label.", "", id, ready + "it lacks the label cluster.drover.dev/join-token: Drover leaves it alone"},
	} {
		t.Run(name, func(t *testing.T) {
			wn := workerNode(func(wn *Node) { wn.Parameters.CloudNamesNodes = false })
			own := names.OfMachine("w", "w")
			n := joined(own, "uid-1", tc.token, tc.providerID)
			n.CreationTimestamp = metav1.NewTime(start)
			kube := fake.NewClientset(n)
			x, _ := newKeeper(start, kube, n)
			want := strings.ReplaceAll(tc.want, "%s", own)
			if _, err := x.update(t.Context(), wn); err != nil || len(writes(kube)) > 0 {
				t.Fatalf("error %v, writes %v", err, writes(kube))
			}
			if j := wn.Observation.Join; j.Unproven != want || j.UnprovenSince == nil || !j.UnprovenSince.Time.Equal(start) {
				t.Errorf("%s\ngot  %q\nwant %q", tc.reason, j.Unproven, want)
			}
			if c := wn.Contest; c == nil || c.Reason != machinev1alpha1.ReasonNodeUnproven || c.Message != want {
				t.Errorf("%s\ncontest %+v", tc.reason, c)
			}
		})
	}
}

func TestARequestWithTheJoinTokenIsAMilestone(t *testing.T) {
	request := func(minute int, conditions ...certificatesv1.CertificateSigningRequestCondition) *certificatesv1.CertificateSigningRequest {
		csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(start.Add(time.Duration(minute) * time.Minute))}}
		csr.Status.Conditions = conditions
		return csr
	}
	approved := certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, LastUpdateTime: metav1.NewTime(start.Add(5 * time.Minute))}
	x, _ := newKeeper(start, fake.NewClientset())
	x.Requests = func(user string) []*certificatesv1.CertificateSigningRequest {
		if user != "system:bootstrap:"+names.TokenID("w") {
			t.Errorf("asked for %s", user)
		}
		return []*certificatesv1.CertificateSigningRequest{request(3), request(2, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateDenied}), request(4, approved)}
	}
	wn := workerNode()
	if _, err := x.update(t.Context(), wn); err != nil {
		t.Fatal(err)
	}
	j := wn.Observation.Join
	if j.CertificateRequested == nil || j.CertificateApproved == nil || j.CertificateRequested.Sub(start) != 2*time.Minute || j.CertificateApproved.Sub(start) != 5*time.Minute {
		t.Errorf("%+v", j)
	}
}

func TestMilestonesWaitForAnotherChange(t *testing.T) {
	now := start.Add(time.Hour)
	status := func(phase machinev1alpha1.MachinePhase, ages ...time.Duration) machinev1alpha1.MachineStatus {
		s := machinev1alpha1.MachineStatus{Phase: phase}
		for i, age := range ages {
			if s.Join == nil {
				s.Join = &machinev1alpha1.JoinStatus{}
			}
			s.Join.Milestones = append(s.Join.Milestones, machinev1alpha1.ReachedMilestone{Name: machinev1alpha1.JoinMilestones()[i], Time: metav1.NewTime(now.Add(-age))})
		}
		return s
	}
	for name, tc := range map[string]struct {
		reason    string
		was, is   machinev1alpha1.MachineStatus
		wait      time.Duration
		isWritten bool
	}{
		"WithAnotherChange": {"Both are one write.", status("Provisioning"), status("Joining", 0), 0, true},
		"Alone":             {"The Node registers within the second.", status("Joining", time.Minute), status("Joining", time.Minute, 2*time.Second), 3 * time.Second, false},
		"AloneForLong":      {"A user waits for it.", status("Joining", time.Minute), status("Joining", time.Minute, 5*time.Second), 0, true},
		"OfAClockAhead":     {"It must not wait for ever.", status("Joining", time.Minute), status("Joining", time.Minute, -time.Hour), 0, true},
		"Nothing":           {"Nothing changes.", status("Joining", time.Minute), status("Joining", time.Minute), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			is := tc.is
			if wait := SettleJoin(now, tc.was, &is); wait != tc.wait {
				t.Errorf("%s: waits %s, want %s", tc.reason, wait, tc.wait)
			}
			if kept := len(is.Join.Milestones) == len(tc.is.Join.Milestones); kept != tc.isWritten {
				t.Errorf("%s: written %v, want %v", tc.reason, kept, tc.isWritten)
			}
		})
	}
}
