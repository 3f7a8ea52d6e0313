package diagnosis_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// TestEachWaitOfADeletionIsAFinding has Machines whose deletion waits for another controller, a provider or a user.
func TestEachWaitOfADeletionIsAFinding(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	const missing = `Waiting for VirtualMachine v: the VM is deleted; its provider reports: cannot get ProviderConfig: ClusterProviderConfig.cloud.example.org "none" not found; create it`
	for name, tc := range map[string]struct {
		stage       machinev1alpha1.DeletionStage
		since       time.Duration
		finalizers  []string
		operation   string
		annotations map[string]string
		// reason of the finding, empty if there is none.
		reason string
		text   string
		state  diagnosis.State
	}{
		"TheNodeIsHeld": {
			stage: machinev1alpha1.DeletionDeletingNode, finalizers: []string{"example.org/hold"}, operation: "Waiting for Node n: it is deleted, and the finalizers example.org/hold of other controllers hold it",
			reason: "WaitingForFinalizers", text: "example.org/hold", state: diagnosis.InProgress,
		},
		"TheVMResourceIsHeld": {
			stage: machinev1alpha1.DeletionDeletingVM, finalizers: []string{"example.org/hold"}, operation: "Waiting for VirtualMachine v: the finalizers example.org/hold hold it",
			reason: "WaitingForFinalizers", text: "example.org/hold", state: diagnosis.NeedsUser,
		},
		"TheMachineIsHeld": {
			stage: machinev1alpha1.DeletionFinalizers, finalizers: []string{"example.org/hold"}, operation: "Everything is deleted, and the finalizers example.org/hold hold the Machine",
			reason: "WaitingForFinalizers", text: "example.org/hold", state: diagnosis.NeedsUser,
		},
		"TheConfigurationIsMissing": {
			stage: machinev1alpha1.DeletionDeletingVM, operation: missing, reason: "ProviderConfigNotFound", text: "drover.dev/force-delete", state: diagnosis.NeedsUser,
		},
		"TheProviderReportsAnError": {
			stage: machinev1alpha1.DeletionDeletingCompanions, operation: "Waiting for Card c: it is deleted; its provider reports: it is in use",
			reason: "VMNotDeleted", text: "it is in use", state: diagnosis.InProgress,
		},
		"TheCloudTakesLong": {
			stage: machinev1alpha1.DeletionDeletingVM, since: 10 * time.Minute, operation: "Waiting for VirtualMachine v: the VM is deleted",
			reason: "VMNotDeleted", text: "Waiting for VirtualMachine v", state: diagnosis.NeedsUser,
		},
		"TheCloudDoesNotTakeLong": {
			stage: machinev1alpha1.DeletionDeletingVM, since: time.Minute, operation: "Waiting for VirtualMachine v: the VM is deleted", state: diagnosis.InProgress,
		},
		"ItIsPausedBeforeItBegins": {
			stage: machinev1alpha1.DeletionPaused, annotations: map[string]string{"crossplane.io/paused": "true"}, operation: "Paused",
			reason: "DeletionPaused", text: "crossplane.io/paused-", state: diagnosis.NeedsUser,
		},
		"ItIsPausedInItsCourse": {
			stage: machinev1alpha1.DeletionDeletingVM, annotations: map[string]string{"crossplane.io/paused": "true"}, operation: "Paused",
			reason: "DeletionPaused", text: "crossplane.io/paused-", state: diagnosis.NeedsUser,
		},
		"TheVMResourceIsPaused": {
			stage: machinev1alpha1.DeletionDeletingVM, operation: "Waiting for VirtualMachine v: the VM is deleted; its annotation crossplane.io/paused keeps its provider from deleting it",
			reason: "DeletionPaused", text: "Remove the annotation crossplane.io/paused of the resource that the message names", state: diagnosis.NeedsUser,
		},
		"AVolumeStays": {
			stage: machinev1alpha1.DeletionDetachingVolumes, operation: "Waiting for Node n: its volumes are detached",
			reason: "DetachingVolumes", text: "volumes are attached to the Node: pv-1 (Detaching)", state: diagnosis.InProgress,
		},
		"AHookStays": {
			stage: machinev1alpha1.DeletionPreDrainHooks, operation: "Waiting for pre-drain hooks: backup",
			reason: "WaitingForHooks", text: "kubectl annotate ma/m -n ns pre-drain.hook.machine.drover.dev/backup-", state: diagnosis.InProgress,
		},
		"AHookBeforeTheVMStays": {
			stage: machinev1alpha1.DeletionPreTerminateHooks, operation: "Waiting for pre-terminate hooks: backup",
			reason: "WaitingForHooks", text: "kubectl annotate ma/m -n ns pre-terminate.hook.machine.drover.dev/backup-", state: diagnosis.InProgress,
		},
		"AForceIsMisspelt": {
			stage: machinev1alpha1.DeletionDeletingVM, annotations: map[string]string{"drover.dev/force-delete": "True"}, operation: "Waiting for VirtualMachine v: the VM is deleted",
			reason: "AnnotationInvalid", text: `drover.dev/force-delete: "True" of the Machine must be true or false`, state: diagnosis.NeedsUser,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Annotations: tc.annotations, DeletionTimestamp: &metav1.Time{Time: now.Add(-time.Hour)}}}
			m.Status.Deletion = &machinev1alpha1.DeletionStatus{Stage: tc.stage, Since: metav1.NewTime(now.Add(-tc.since)), Finalizers: tc.finalizers}
			m.Status.Deletion.Hooks = []string{"backup"}
			m.Status.Drain = &machinev1alpha1.DrainStatus{Volumes: []machinev1alpha1.MovingVolume{{Name: "pv-1", State: machinev1alpha1.VolumeDetaching}}}
			m.Status.LastOperation = &machinev1alpha1.LastOperation{Type: machinev1alpha1.OperationDelete, Description: tc.operation}
			a, err := diagnosis.Why(&view.View{Machines: []machinev1alpha1.Machine{m}}, view.Ref{Kind: view.Machine, Namespace: "ns", Name: "m"}, now)
			if err != nil {
				t.Fatal(err)
			}
			if a.State != tc.state {
				t.Errorf("state %s, want %s", a.State, tc.state)
			}
			if tc.reason == "" {
				if len(a.Findings) > 0 {
					t.Errorf("findings %+v", a.Findings)
				}
				return
			}
			i := slices.IndexFunc(a.Findings, func(f diagnosis.Finding) bool { return f.Reason == tc.reason })
			if i < 0 {
				t.Fatalf("findings %+v, want one with the reason %s", a.Findings, tc.reason)
			}
			f := a.Findings[i]
			if f.Meaning == "" || f.Do == "" || !strings.Contains(strings.Join(append(f.Commands, f.Cause, f.Do), "\n"), tc.text) {
				t.Errorf("finding %+v: it lacks a meaning, an advice, or %q", f, tc.text)
			}
		})
	}
}

func TestARefusedEvictionNamesWhatRefusesIt(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason string
		cause  machinev1alpha1.DrainCause
		do     string
		state  diagnosis.State
	}{
		"AWebhookThatCannotBeCalled": {
			`cannot be evicted: HTTP 500 (InternalError) to POST /api/v1/namespaces/web/pods/p/eviction: the admission webhook "evictions.example.org" cannot be called`, machinev1alpha1.DrainEvictionRefused, "Correct what refuses the evictions in the target cluster", diagnosis.NeedsUser,
		},
		"AWebhookThatDenies": {`cannot be evicted: HTTP 403 (Forbidden) to POST /x: the admission webhook "evictions.example.org" refuses it`, machinev1alpha1.DrainEvictionRefused, "Correct what refuses the evictions in the target cluster", diagnosis.NeedsUser},
		"APolicyThatDenies":  {`cannot be evicted: HTTP 422 (Invalid) to POST /x: the ValidatingAdmissionPolicy "evictions" refuses it`, machinev1alpha1.DrainEvictionRefused, "Correct what refuses the evictions in the target cluster", diagnosis.NeedsUser},
		"AMissingRight":      {"cannot be evicted: HTTP 403 (Forbidden) to POST /x", machinev1alpha1.DrainEvictionRefused, "Correct what refuses the evictions in the target cluster", diagnosis.NeedsUser},
		"ABudget":            {"its PodDisruptionBudget does not allow its eviction", "", "Correct the PodDisruptionBudget", diagnosis.InProgress},
		"AnErrorThatPasses":  {"cannot be evicted: HTTP 500 (InternalError) to POST /x", machinev1alpha1.DrainEvictionFailed, "Correct what refuses the evictions in the target cluster", diagnosis.InProgress},
		"WordsProveNothing":  {`cannot be evicted: HTTP 500 (InternalError) to POST /x: the admission webhook "a" refuses it`, "", "Correct the PodDisruptionBudget or move the pods", diagnosis.InProgress},
	} {
		t.Run(name, func(t *testing.T) {
			m := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", DeletionTimestamp: &metav1.Time{Time: now.Add(-time.Hour)}}}
			m.Status.Deletion = &machinev1alpha1.DeletionStatus{
				Stage: machinev1alpha1.DeletionDraining, Since: metav1.NewTime(now), Pods: []machinev1alpha1.DrainedPod{{Namespace: "web", Name: "p", Reason: tc.reason, Cause: tc.cause}},
			}
			a, err := diagnosis.Why(&view.View{Machines: []machinev1alpha1.Machine{m}}, view.Ref{Kind: view.Machine, Namespace: "ns", Name: "m"}, now)
			if err != nil {
				t.Fatal(err)
			}
			if a.State != tc.state || len(a.Findings) != 1 || !strings.HasPrefix(a.Findings[0].Do, tc.do) || !strings.Contains(a.Findings[0].Cause, tc.reason) {
				t.Errorf("state %s, findings %+v, want %s and %q", a.State, a.Findings, tc.state, tc.do)
			}
		})
	}
}
