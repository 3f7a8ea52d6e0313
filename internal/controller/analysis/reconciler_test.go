package analysis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

var start = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// A world has one run, in a control cluster and a target cluster.
type world struct {
	*reconciler
	at     time.Time
	writes int
	kube   *fake.Clientset
	nodes  map[string]*corev1.Node
	// broken is the error of each connection.
	broken error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{machinev1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{at: start, kube: fake.NewClientset(), nodes: map[string]*corev1.Node{}}
	c := crfake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&machinev1alpha1.RolloutAnalysisRun{}).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			w.writes++
			return c.SubResource(sub).Update(ctx, o, opts...)
		}}).Build()
	w.reconciler = &reconciler{client: c, live: c, now: func() time.Time { return w.at }, tried: map[types.NamespacedName]map[string]time.Time{}}
	w.connect = func(context.Context, *machinev1alpha1.Machine) (cluster, error) {
		if w.broken != nil {
			return cluster{}, w.broken
		}
		return cluster{
			kube:     w.kube,
			node:     func(_ context.Context, name, _ string) (*corev1.Node, error) { return w.nodes[name], nil },
			classify: func(err error) error { return err },
		}, nil
	}
	return w
}

// nodes of a set, with pods that are Ready.
func (w *world) join(t *testing.T, set string, n, pods int, broken ...func(i int, p *corev1.Pod)) {
	t.Helper()
	for i := range n {
		name := fmt.Sprintf("%s-%d", set, i)
		m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: map[string]string{machinev1alpha1.LabelSet: set}}}
		m.Status.NodeRef = &machinev1alpha1.NodeReference{Kind: "Node", Name: name}
		if err := w.client.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		w.nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: "MemoryPressure", Status: "False"}, {Type: "KernelDeadlock", Status: "False"}, {Type: corev1.NodeReady, Status: "True"},
		}}}
		for j := range pods {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: fmt.Sprintf("%s-%d", name, j), CreationTimestamp: metav1.NewTime(start.Add(-time.Hour))}}
			p.Spec.NodeName = name
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app"}}
			for _, change := range broken {
				change(j, p)
			}
			if err := w.kube.Tracker().Add(p); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (w *world) reconcile(t *testing.T) (machinev1alpha1.RolloutAnalysisRunStatus, time.Duration) {
	t.Helper()
	key := client.ObjectKey{Namespace: "team", Name: "workers-x"}
	result, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		t.Fatal(err)
	}
	run := &machinev1alpha1.RolloutAnalysisRun{}
	if err := w.client.Get(t.Context(), key, run); err != nil {
		t.Fatal(err)
	}
	return run.Status, result.RequeueAfter
}

func run(names ...string) *machinev1alpha1.RolloutAnalysisRun {
	return &machinev1alpha1.RolloutAnalysisRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "workers-x", Generation: 3, UID: "run"},
		Spec: machinev1alpha1.RolloutAnalysisRunSpec{
			MachineDeployment: "workers", Analyses: names, Run: names, NewMachineSet: "new", OldMachineSets: []string{"old"},
			Step: &machinev1alpha1.AnalyzedStep{Rollout: "2-abc", Step: 1, Since: metav1.NewTime(start)},
		},
	}
}

func ofNodes(name string, changes ...func(*machinev1alpha1.RolloutAnalysisSpec)) *machinev1alpha1.RolloutAnalysis {
	percent := func(n int32) machinev1alpha1.AnalysisLimit {
		return machinev1alpha1.AnalysisLimit{MaxAboveOldPercent: &n}
	}
	zero := intstr.FromInt32(0)
	a := &machinev1alpha1.RolloutAnalysis{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Generation: 1}}
	// The defaults of the schema.
	a.Spec = machinev1alpha1.RolloutAnalysisSpec{
		Interval: metav1.Duration{Duration: time.Minute}, Count: 2, Timeout: metav1.Duration{Duration: 30 * time.Minute},
		Nodes: &machinev1alpha1.NodeAnalysis{
			UnhealthyNodes: machinev1alpha1.AnalysisLimit{Max: &zero}, CrashingPods: percent(10), ImagePullFailures: percent(10), NotReadyPods: percent(10),
			RestartedPods: percent(10), EvictedPods: percent(10), MinPods: 1,
		},
	}
	for _, change := range changes {
		change(&a.Spec)
	}
	return a
}

func waiting(reason string) func(int, *corev1.Pod) {
	return func(i int, p *corev1.Pod) {
		if i == 0 {
			p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: "secret words of the cluster"}
		}
	}
}

func notReady(since time.Time) func(int, *corev1.Pod) {
	return func(i int, p *corev1.Pod) {
		if i == 0 {
			p.Status.Conditions[0].Status, p.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(since)
		}
	}
}

func restarted(at time.Time) func(int, *corev1.Pod) {
	return func(i int, p *corev1.Pod) {
		if i == 0 {
			p.Status.ContainerStatuses[0].RestartCount = 1
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at)}
		}
	}
}

// TestNodesAreCompared has one Node of the new template and three of the old one, with five pods each.
func TestNodesAreCompared(t *testing.T) {
	for name, tc := range map[string]struct {
		newPods, oldPods []func(int, *corev1.Pod)
		node             func(*corev1.Node)
		analysis         func(*machinev1alpha1.RolloutAnalysisSpec)
		verdict          machinev1alpha1.AnalysisVerdict
		message          string
	}{
		"healthy pods":       {verdict: machinev1alpha1.AnalysisRunning, message: "all limits hold for 5 pods on 1 of 1 new Nodes, compared with 15 pods on 3 of 3 old ones"},
		"a pod that crashes": {newPods: []func(int, *corev1.Pod){waiting("CrashLoopBackOff")}, verdict: machinev1alpha1.AnalysisFail, message: "crashingPods: 1 of 5 pods on the new Nodes, 0 of 15 on the old ones; allowed is at most 10 percentage points above the old Nodes"},
		"a pod that crashes on the old Nodes as well": {newPods: []func(int, *corev1.Pod){waiting("CrashLoopBackOff")}, oldPods: []func(int, *corev1.Pod){waiting("CrashLoopBackOff")}, verdict: machinev1alpha1.AnalysisRunning},
		"an image that cannot be pulled":              {newPods: []func(int, *corev1.Pod){waiting("ImagePullBackOff")}, verdict: machinev1alpha1.AnalysisFail, message: "imagePullFailures: 1 of 5"},
		"a container that is created":                 {newPods: []func(int, *corev1.Pod){waiting("ContainerCreating")}, verdict: machinev1alpha1.AnalysisRunning},
		"a pod that is not Ready for long":            {newPods: []func(int, *corev1.Pod){notReady(start.Add(-2 * time.Minute))}, verdict: machinev1alpha1.AnalysisFail, message: "notReadyPods: 1 of 5"},
		"a pod that is not Ready yet":                 {newPods: []func(int, *corev1.Pod){notReady(start.Add(-time.Minute))}, verdict: machinev1alpha1.AnalysisRunning},
		"a container that restarted since the begin":  {newPods: []func(int, *corev1.Pod){restarted(start)}, verdict: machinev1alpha1.AnalysisFail, message: "restartedPods: 1 of 5"},
		"a container that restarted before":           {newPods: []func(int, *corev1.Pod){restarted(start.Add(-time.Second))}, verdict: machinev1alpha1.AnalysisRunning},
		"a pod that was evicted": {newPods: []func(int, *corev1.Pod){func(i int, p *corev1.Pod) {
			if i == 0 {
				p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted"
			}
		}}, verdict: machinev1alpha1.AnalysisFail, message: "evictedPods: 1 of 5"},
		"a job that failed, or is complete, is none": {newPods: []func(int, *corev1.Pod){waiting("CrashLoopBackOff"), func(i int, p *corev1.Pod) {
			if i == 0 {
				p.Status.Phase = corev1.PodFailed
			} else if i == 1 {
				p.Status.Phase = corev1.PodSucceeded
			}
		}}, verdict: machinev1alpha1.AnalysisRunning, message: "for 3 pods"},
		"a Node with a problem that an agent reports": {node: func(n *corev1.Node) { n.Status.Conditions[1].Status = "True" }, verdict: machinev1alpha1.AnalysisFail, message: "unhealthyNodes: 1 of 1 Nodes"},
		"a Node that is not Ready":                    {node: func(n *corev1.Node) { n.Status.Conditions[2].Status = "Unknown" }, verdict: machinev1alpha1.AnalysisFail, message: "unhealthyNodes: 1 of 1 Nodes"},
		"an absolute limit that holds": {newPods: []func(int, *corev1.Pod){waiting("CrashLoopBackOff")}, analysis: func(s *machinev1alpha1.RolloutAnalysisSpec) {
			one := intstr.FromInt32(1)
			s.Nodes.CrashingPods = machinev1alpha1.AnalysisLimit{Max: &one}
		}, verdict: machinev1alpha1.AnalysisRunning},
		"a percentage that holds": {newPods: []func(int, *corev1.Pod){waiting("CrashLoopBackOff")}, analysis: func(s *machinev1alpha1.RolloutAnalysisSpec) {
			p := intstr.FromString("20%")
			s.Nodes.CrashingPods = machinev1alpha1.AnalysisLimit{Max: &p}
		}, verdict: machinev1alpha1.AnalysisRunning},
		"a percentage that does not": {newPods: []func(int, *corev1.Pod){waiting("CrashLoopBackOff")}, analysis: func(s *machinev1alpha1.RolloutAnalysisSpec) {
			p := intstr.FromString("19%")
			s.Nodes.CrashingPods = machinev1alpha1.AnalysisLimit{Max: &p}
		}, verdict: machinev1alpha1.AnalysisFail, message: "allowed is at most 19%"},
		"too few pods":              {analysis: func(s *machinev1alpha1.RolloutAnalysisSpec) { s.Nodes.MinPods = 6 }, verdict: machinev1alpha1.AnalysisInconclusive, message: "have 5 pods: spec.nodes.minPods is 6"},
		"a failure that is allowed": {newPods: []func(int, *corev1.Pod){waiting("CrashLoopBackOff")}, analysis: func(s *machinev1alpha1.RolloutAnalysisSpec) { s.FailureLimit = 1 }, verdict: machinev1alpha1.AnalysisRunning, message: "crashingPods"},
		"one measurement is enough": {analysis: func(s *machinev1alpha1.RolloutAnalysisSpec) { s.Count = 1 }, verdict: machinev1alpha1.AnalysisPass},
	} {
		t.Run(name, func(t *testing.T) {
			a := ofNodes("pods")
			if tc.analysis != nil {
				tc.analysis(&a.Spec)
			}
			w := newWorld(t, run("pods"), a)
			w.join(t, "new", 1, 5, tc.newPods...)
			w.join(t, "old", 3, 5, tc.oldPods...)
			if tc.node != nil {
				tc.node(w.nodes["new-0"])
			}
			s, _ := w.reconcile(t)
			if len(s.Results) != 1 || s.Results[0].Verdict != tc.verdict || !strings.Contains(s.Results[0].Message, tc.message) {
				t.Fatalf("results %+v, want %s with %q", s.Results, tc.verdict, tc.message)
			}
			if strings.Contains(fmt.Sprint(s), "secret words") {
				t.Errorf("a text of the target cluster is in the status: %+v", s)
			}
		})
	}
}

func TestAnAnalysisPassesAfterItsMeasurements(t *testing.T) {
	w := newWorld(t, run("pods"), ofNodes("pods", func(s *machinev1alpha1.RolloutAnalysisSpec) { s.Count = 3 }))
	w.join(t, "new", 1, 5)
	w.join(t, "old", 3, 5)
	for i, want := range []machinev1alpha1.AnalysisVerdict{machinev1alpha1.AnalysisRunning, machinev1alpha1.AnalysisRunning, machinev1alpha1.AnalysisPass} {
		s, again := w.reconcile(t)
		if s.Results[0].Verdict != want || s.Results[0].Passed != int32(i+1) || s.ObservedGeneration != 3 {
			t.Fatalf("measurement %d: %+v", i+1, s)
		}
		if want == machinev1alpha1.AnalysisRunning && again != time.Minute || want == machinev1alpha1.AnalysisPass && again != 0 {
			t.Errorf("measurement %d: the next one is after %s", i+1, again)
		}
		// A reconcile before its time measures nothing.
		w.at = w.at.Add(59 * time.Second)
		if s, _ := w.reconcile(t); s.Results[0].Passed != int32(i+1) {
			t.Errorf("%d measurements after %s", s.Results[0].Passed, w.at.Sub(start))
		}
		w.at = w.at.Add(time.Second)
	}
	if w.writes != 3 {
		t.Errorf("%d writes", w.writes)
	}
	// A verdict stays, whatever happens to the Nodes.
	w.nodes["new-0"].Status.Conditions[2].Status = "False"
	w.at = w.at.Add(24 * time.Hour)
	if s, again := w.reconcile(t); s.Results[0].Verdict != machinev1alpha1.AnalysisPass || again != 0 || w.writes != 3 {
		t.Errorf("%+v, again after %s, %d writes", s, again, w.writes)
	}
}

func TestAVerdictIsAboutOneStep(t *testing.T) {
	for name, change := range map[string]func(*machinev1alpha1.RolloutAnalysisRun){
		"another rollout": func(r *machinev1alpha1.RolloutAnalysisRun) { r.Spec.Step.Rollout = "3-def" },
		"another step":    func(r *machinev1alpha1.RolloutAnalysisRun) { r.Spec.Step.Step = 2 },
		"another time": func(r *machinev1alpha1.RolloutAnalysisRun) {
			r.Spec.Step.Since = metav1.NewTime(start.Add(time.Minute))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := run("pods")
			r.Status.Step = r.Spec.Step.DeepCopy()
			r.Status.Results = []machinev1alpha1.AnalysisResult{{Name: "pods", ObservedGeneration: 1, Verdict: machinev1alpha1.AnalysisFail, StartTime: metav1.NewTime(start)}}
			change(r)
			w := newWorld(t, r, ofNodes("pods"))
			w.join(t, "new", 1, 5)
			if s, _ := w.reconcile(t); s.Results[0].Verdict != machinev1alpha1.AnalysisRunning || s.Results[0].Failed > 0 {
				t.Errorf("%+v", s.Results)
			}
		})
	}
	t.Run("another analysis of the name", func(t *testing.T) {
		r := run("pods")
		r.Status.Step = r.Spec.Step.DeepCopy()
		r.Status.Results = []machinev1alpha1.AnalysisResult{{Name: "pods", ObservedGeneration: 1, Verdict: machinev1alpha1.AnalysisPass, StartTime: metav1.NewTime(start)}}
		changed := ofNodes("pods")
		changed.Generation = 2
		w := newWorld(t, r, changed)
		w.join(t, "new", 1, 5)
		if s, _ := w.reconcile(t); s.Results[0].Verdict != machinev1alpha1.AnalysisRunning {
			t.Errorf("%+v", s.Results)
		}
	})
	t.Run("no step", func(t *testing.T) {
		r := run("pods")
		r.Spec.Step, r.Spec.Run = nil, nil
		w := newWorld(t, r, ofNodes("pods"))
		if s, again := w.reconcile(t); s.Step != nil || len(s.Results) > 0 || again != 0 || len(s.Found) != 1 {
			t.Errorf("%+v, again after %s", s, again)
		}
	})
}

// TestAClusterThatDoesNotAnswer is inconclusive, and costs one write however long that lasts.
func TestAClusterThatDoesNotAnswer(t *testing.T) {
	w := newWorld(t, run("pods"), ofNodes("pods"))
	w.join(t, "new", 1, 5)
	w.broken = &target.Error{Kind: target.Unreachable, Ref: target.ClusterRef("eu"), Detail: "the API server https://eu cannot be reached: no answer in time"}
	for range 100 {
		s, again := w.reconcile(t)
		if s.Results[0].Verdict != machinev1alpha1.AnalysisInconclusive || !strings.Contains(s.Results[0].Message, "cannot be reached") || again != time.Minute {
			t.Fatalf("%+v, again after %s", s, again)
		}
		w.at = w.at.Add(time.Minute)
	}
	if w.writes != 1 {
		t.Errorf("%d writes", w.writes)
	}
	w.broken = nil
	if s, _ := w.reconcile(t); s.Results[0].Verdict != machinev1alpha1.AnalysisRunning || s.Results[0].Passed != 1 || !s.Results[0].StartTime.Time.Equal(start) {
		t.Errorf("%+v", s)
	}
}

func TestProblemsNameFieldAndValue(t *testing.T) {
	prometheus := func(condition, secret string) func(*machinev1alpha1.RolloutAnalysisSpec) {
		return func(s *machinev1alpha1.RolloutAnalysisSpec) {
			s.Nodes, s.Prometheus = nil, &machinev1alpha1.PrometheusAnalysis{URL: "https://prometheus.example.org", Query: "up", Condition: condition}
			if secret != "" {
				s.Prometheus.SecretRef = &machinev1alpha1.AnalysisSecretReference{Name: secret}
			}
		}
	}
	secret := func(typ corev1.SecretType, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "login"}, Type: typ, Data: data}
	}
	const all = "result.all(r, r.value < 1.0)"
	for name, tc := range map[string]struct {
		objects         []client.Object
		reason, message string
	}{
		"none of the name, and none at all": {nil, machinev1alpha1.ReasonAnalysisNotFound, "the namespace team has no RolloutAnalysis of the name, and no other one"},
		"none of the name, but others":      {[]client.Object{ofNodes("canary"), ofNodes("nodes")}, machinev1alpha1.ReasonAnalysisNotFound, "it must be one of canary, nodes"},
		"a condition that is no CEL":        {[]client.Object{ofNodes("pods", prometheus("result.all(", ""))}, machinev1alpha1.ReasonAnalysisInvalid, `RolloutAnalysis pods: spec.prometheus.condition: "result.all("`},
		"a Secret that does not exist":      {[]client.Object{ofNodes("pods", prometheus(all, "login"))}, machinev1alpha1.ReasonAnalysisInvalid, `spec.prometheus.secretRef.name: invalid value "login": there is no such Secret in the namespace team: create one of the type prometheus.machine.drover.dev`},
		"a Secret of another type":          {[]client.Object{ofNodes("pods", prometheus(all, "login")), secret(corev1.SecretTypeOpaque, map[string][]byte{"token": []byte("s3cret")})}, machinev1alpha1.ReasonAnalysisInvalid, "the Secret must be of the type prometheus.machine.drover.dev"},
		"a Secret without a certificate":    {[]client.Object{ofNodes("pods", prometheus(all, "login")), secret(machinev1alpha1.SecretTypePrometheus, map[string][]byte{"ca.crt": []byte("s3cret")})}, machinev1alpha1.ReasonAnalysisInvalid, "the key ca.crt of the Secret must have certificates in PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run("pods")
			r.Spec.Step, r.Spec.Run = nil, nil
			s, again := newWorld(t, append(tc.objects, r)...).reconcile(t)
			if len(s.Problems) != 1 || s.Problems[0].Name != "pods" || s.Problems[0].Reason != tc.reason || !strings.Contains(s.Problems[0].Message, tc.message) || len(s.Found) > 0 {
				t.Errorf("%+v, want %s with %q", s, tc.reason, tc.message)
			}
			if strings.Contains(fmt.Sprint(s), "s3cret") {
				t.Errorf("the status has the content of a Secret: %+v", s)
			}
			if again != lookAgain {
				t.Errorf("looks again after %s", again)
			}
		})
	}
}

// TestAStaleVerdictIsRefused has a run whose step changed while it was measured.
func TestAStaleVerdictIsRefused(t *testing.T) {
	w := newWorld(t, run("pods"), ofNodes("pods"))
	w.join(t, "new", 1, 5)
	connect := w.connect
	w.connect = func(ctx context.Context, m *machinev1alpha1.Machine) (cluster, error) {
		r := &machinev1alpha1.RolloutAnalysisRun{}
		err := w.client.Get(ctx, client.ObjectKey{Namespace: "team", Name: "workers-x"}, r)
		r.Spec.Step.Step = 2
		if err = errors.Join(err, w.client.Update(ctx, r)); err != nil {
			t.Fatal(err)
		}
		return connect(ctx, m)
	}
	if s, again := w.reconcile(t); len(s.Results) > 0 || again != time.Second {
		t.Errorf("%+v, again after %s", s, again)
	}
}
