package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/prometheus"
	"github.com/drover-dev/drover/test/patience"
)

// TestAnAnalysisStopsATemplateWhosePodsCrash rolls ten Machines to a template whose kubelets are Ready and whose pods crash. It is
// stopped at the first of them by the health of the pods alone, and rolled back. The spec is not changed. Before, the analysis
// that the step names does not exist.
func TestAnAnalysisStopsATemplateWhosePodsCrash(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	md := f.Deployment("canary", 10, 1, 0)
	md.Spec.Strategy.RollingUpdate.Steps = []machinev1alpha1.RolloutStep{{Updated: intstr.FromInt32(1), Analyses: []string{"pods"}}}
	md.Spec.Rollout.OnFailure = machinev1alpha1.FailureRollback
	f.Create(t, md)
	awaitReason(t, f, md, machinev1alpha1.ConditionValid, machinev1alpha1.ReasonAnalysisNotFound)
	analysis := &machinev1alpha1.RolloutAnalysis{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "pods"}}
	// It does not pass before the pod crashes.
	analysis.Spec = machinev1alpha1.RolloutAnalysisSpec{Interval: metav1.Duration{Duration: time.Second}, Count: 1000, Nodes: &machinev1alpha1.NodeAnalysis{MinPods: 1}}
	f.Create(t, analysis)
	awaitReason(t, f, md, machinev1alpha1.ConditionValid, machinev1alpha1.ReasonValid)
	f.AwaitDeployment(t, md.Name)

	guard := f.GuardBy(t, func(machines map[string]*machinev1alpha1.Machine) []string {
		n := 0
		for _, m := range machines {
			if m.Spec.Version == kit.NewVersion {
				n++
			}
		}
		if n > 1 {
			return []string{fmt.Sprintf("there are %d Machines of the new template", n)}
		}
		return nil
	})
	roll(t, f, md, kit.NewVersion)
	awaitReason(t, f, md, machinev1alpha1.ConditionProgressing, machinev1alpha1.ReasonAnalyzing)
	crashOn(t, f, nodeOfVersion(t, f, kit.NewVersion))
	awaitReason(t, f, md, machinev1alpha1.ConditionStalled, machinev1alpha1.ReasonRolloutRejected)
	awaitVersions(t, f, map[string]int{kit.OldVersion: 10})
	must(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(md), md))
	c := meta.FindStatusCondition(md.Status.Conditions, machinev1alpha1.ConditionStalled)
	if c == nil || !strings.Contains(c.Message, "AnalysisFailed: step 1 of 1: the analysis pods failed: crashingPods: 1 of 1 pods on the new Nodes") {
		t.Errorf("Stalled does not have the analysis and its numbers: %+v", c)
	}
	if v := md.Spec.Template.Spec.Version; v != kit.NewVersion {
		t.Errorf("the spec was changed: its version is %s", v)
	}
	guard.Done(t, 2)
	f.DeleteDeployment(t, md.Name)
}

// TestAPrometheusDecidesARollout has the errors of applications in a real Prometheus: those on Nodes of one template fail. That
// template is rolled back at its first Machine, with the number, and the next one passes.
func TestAPrometheusDecidesARollout(t *testing.T) {
	kit.OnlyInLong(t, "TestAnAnalysisStopsATemplateWhosePodsCrash, and TestARealPrometheusDecidesACanary in internal/controller/analysis")
	t.Parallel()
	server := prometheus.New(t)
	f := plane.NewFleet(t)
	analysis := &machinev1alpha1.RolloutAnalysis{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "errors"}}
	analysis.Spec = machinev1alpha1.RolloutAnalysisSpec{Interval: metav1.Duration{Duration: time.Second}, Count: 2, Prometheus: &machinev1alpha1.PrometheusAnalysis{
		URL: server.URL(), Query: `sum by (node) (app_errors{node=~"${newNodes}"})`, Condition: `result.all(r, r.value <= 5.0)`,
	}}
	f.Create(t, analysis)
	md := f.Deployment("queried", 2, 1, 0)
	md.Spec.Strategy.RollingUpdate.Steps = []machinev1alpha1.RolloutStep{{Updated: intstr.FromInt32(1), Analyses: []string{"errors"}}}
	md.Spec.Rollout.OnFailure = machinev1alpha1.FailureRollback
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)

	roll(t, f, md, kit.NewVersion)
	// Without an answer there is no verdict.
	awaitReason(t, f, md, machinev1alpha1.ConditionProgressing, machinev1alpha1.ReasonAnalyzing)
	bad := nodeOfVersion(t, f, kit.NewVersion)
	server.Scrape(t, func(w http.ResponseWriter, r *http.Request) {
		machines, err := f.Machines(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		for _, m := range machines {
			if m.Status.NodeRef == nil {
				continue
			}
			errors := 0
			if m.Spec.Version == kit.NewVersion && m.Labels["fix"] == "" {
				errors = 6
			}
			fmt.Fprintf(w, "app_errors{node=%q} %d\n", m.Status.NodeRef.Name, errors)
		}
	})
	awaitReason(t, f, md, machinev1alpha1.ConditionStalled, machinev1alpha1.ReasonRolloutRejected)
	c := meta.FindStatusCondition(md.Status.Conditions, machinev1alpha1.ConditionStalled)
	if want := fmt.Sprintf("the analysis errors failed: result.all(r, r.value <= 5.0) is false for {node=%q} = 6", bad); c == nil || !strings.Contains(c.Message, want) {
		t.Errorf("Stalled does not have %s: %+v", want, c)
	}
	awaitVersions(t, f, map[string]int{kit.OldVersion: 2})

	f.Patch(t, md, `{"spec":{"template":{"metadata":{"labels":{"fix":"1"}}}}}`)
	awaitVersions(t, f, map[string]int{kit.NewVersion: 2})
	f.AwaitDeployment(t, md.Name)
	f.DeleteDeployment(t, md.Name)
}

// nodeOfVersion is the name of the Node of the Machine of a version.
func nodeOfVersion(t *testing.T, f kit.Fleet, version string) string {
	t.Helper()
	machines, err := f.Machines(t.Context())
	must(t, err)
	for _, m := range machines {
		if m.Spec.Version == version && m.Status.NodeRef != nil {
			return m.Status.NodeRef.Name
		}
	}
	t.Fatalf("no Machine of %s has a Node", version)
	return ""
}

// crashOn makes a pod on a Node whose container is in CrashLoopBackOff.
func crashOn(t *testing.T, f kit.Fleet, node string) {
	t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "crashes"}}
	p.Spec = corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}}, TerminationGracePeriodSeconds: ptr.To(int64(0))}
	f.CreateIn(t, f.Cluster, p)
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error()
		}
		if p.Status.Phase != corev1.PodRunning {
			return fmt.Sprintf("pod %s is %s", p.Name, p.Status.Phase)
		}
		return ""
	})
	f.PatchStatusIn(t, f.Cluster, p, `{"status":{"containerStatuses":[{"name":"c","image":"example.org/c","imageID":"","ready":false,"restartCount":3,
		"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`)
}
