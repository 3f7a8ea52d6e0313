package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// A reader checks every version of a MachineDeployment, like a client of kstatus.
type reader struct {
	mu       sync.Mutex
	versions int
	observed []int64
	wrong    []string
	// ready is the last generation that was Ready.
	ready   int64
	stopped chan struct{}
	stop    func()
}

func read(t *testing.T, f kit.Fleet, name string) *reader {
	t.Helper()
	now := &machinev1alpha1.MachineDeploymentList{}
	must(t, f.Client.List(t.Context(), now, client.InNamespace(f.Namespace)))
	w, err := watchtools.NewRetryWatcherWithContext(t.Context(), now.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return f.Client.Watch(ctx, &machinev1alpha1.MachineDeploymentList{}, client.InNamespace(f.Namespace), &client.ListOptions{Raw: &o})
		},
	})
	must(t, err)
	r := &reader{stopped: make(chan struct{}), stop: w.Stop}
	go func() {
		defer close(r.stopped)
		for e := range w.ResultChan() {
			if md, ok := e.Object.(*machinev1alpha1.MachineDeployment); ok && md.Name == name && e.Type != watch.Deleted {
				r.look(md)
			}
		}
	}()
	return r
}

func (r *reader) look(md *machinev1alpha1.MachineDeployment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions++
	s := md.Status
	if md.DeletionTimestamp != nil || s.ObservedGeneration != md.Generation {
		return
	}
	if !slices.Contains(r.observed, md.Generation) {
		r.observed = append(r.observed, md.Generation)
	}
	report := func(format string, args ...any) {
		r.wrong = append(r.wrong, fmt.Sprintf("resourceVersion %s, generation %d: ", md.ResourceVersion, md.Generation)+fmt.Sprintf(format, args...))
	}
	ready := meta.FindStatusCondition(s.Conditions, "Ready")
	reconciling := meta.FindStatusCondition(s.Conditions, "Reconciling")
	if ready == nil || reconciling == nil {
		report("it is observed without conditions")
		return
	}
	if ready.ObservedGeneration != md.Generation {
		report("it is observed with the conditions of generation %d", ready.ObservedGeneration)
	}
	if reconciling.Status == metav1.ConditionFalse && s.UpdatedReplicas+s.Replicas != 2*md.Spec.Replicas {
		report("Reconciling is False (%s) with %d of %d Machines, %d of them up to date", reconciling.Reason, s.Replicas, md.Spec.Replicas, s.UpdatedReplicas)
	}
	switch isReady := ready.Status == metav1.ConditionTrue; {
	case isReady:
		r.ready = md.Generation
	case r.ready == md.Generation && ready.ObservedGeneration == md.Generation:
		report("Ready became %s again (%s), and nobody changed anything: %+v", ready.Status, ready.Reason, s)
	}
}

// done checks that the reader saw a minimum number of generations, and no contradiction.
func (r *reader) done(t *testing.T, generations int) {
	t.Helper()
	r.stop()
	<-r.stopped
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.wrong {
		t.Error(w)
	}
	if len(r.observed) < generations {
		t.Errorf("of %d versions only the generations %v were ever observed", r.versions, r.observed)
	}
}

func TestNoReaderSeesANewGenerationWithTheConditionsOfBefore(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	md := f.Deployment("workers", 1, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	r := read(t, f, md.Name)
	for _, replicas := range []int{3, 1, 2} {
		kubectl(t, f, "scale", "md", md.Name, fmt.Sprintf("--replicas=%d", replicas))
		kubectl(t, f, "wait", "--for=condition=Reconciling=false", "md/"+md.Name, patience.Flag())
		must(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(md), md))
		if s := md.Status; int(s.AvailableReplicas) != replicas || int(s.Replicas) != replicas {
			t.Errorf("kubectl wait returned with %d Machines, %d of them available, of %d", s.Replicas, s.AvailableReplicas, replicas)
		}
	}
	roll(t, f, md, kit.NewVersion)
	kubectl(t, f, "wait", "--for=condition=Reconciling=false", "md/"+md.Name, patience.Flag())
	f.AwaitDeployment(t, md.Name)
	r.done(t, 4)
}

func TestADeletedDeploymentReportsWhatHoldsItUntilItIsGone(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	md := f.Deployment("workers", 1, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	machine, set := onlyMachine(t, f), onlySet(t, f)
	m := &member{f: f, name: machine.Name, node: machine.Status.NodeRef.Name}
	m.pod(t, "held", nil)
	pdb := m.budget(t, "web", "held", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(0))})
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(pdb), pdb); err != nil || pdb.Status.CurrentHealthy != 1 {
			return fmt.Sprintf("the budget sees %d healthy pods, %v", pdb.Status.CurrentHealthy, err)
		}
		return ""
	})

	must(t, f.Client.Delete(t.Context(), md, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	texts := []string{machine.Name + "-held", "web", "the drain is forced at ", machinev1alpha1.AnnotationForceDrain}
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil {
			return err.Error()
		}
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err.Error()
		}
		if s := md.Status; s.AvailableReplicas != 0 || s.TerminatingReplicas != 1 || s.ObservedGeneration != md.Generation {
			return fmt.Sprintf("the MachineDeployment reports %+v", s)
		}
		for kind, conditions := range map[string][]metav1.Condition{"MachineDeployment": md.Status.Conditions, "MachineSet": set.Status.Conditions} {
			if c := meta.FindStatusCondition(conditions, "Available"); c == nil || c.Status != metav1.ConditionFalse {
				return fmt.Sprintf("Available of the %s is %+v", kind, c)
			}
			c := meta.FindStatusCondition(conditions, "Reconciling")
			for _, text := range texts {
				if c == nil || !strings.Contains(c.Message, text) {
					return fmt.Sprintf("Reconciling of the %s lacks %q: %+v", kind, text, c)
				}
			}
		}
		return ""
	}, f.Describe)
	reportsInOrder(t, f, "MachineDeployment/"+md.Name, "DrainBlocked")
	kubectl(t, f, "annotate", "machine", machine.Name, machinev1alpha1.AnnotationForceDrain+"=true")
	f.AwaitNothing(t)
}

func TestAFailedMachineThatMayNotBeReplacedStallsItsDeploymentWithTheRemedy(t *testing.T) {
	kit.OnlyInLong(t, "the tests of conditions in internal/plan/deployment and internal/conditionsgen")
	t.Parallel()
	f := plane.NewFleet(t)
	md := impatient(f, "workers", 2)
	md.Spec.Remediation.MaxInFlight = ptr.To(intstr.FromInt32(0))
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	failed := anyOf(machineNames(t, f))
	strike(t, f, localcloud.FaultVanish, failed)
	await := func(status metav1.ConditionStatus, reason string, texts ...string) {
		t.Helper()
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil {
				return err.Error()
			}
			c := meta.FindStatusCondition(md.Status.Conditions, "Stalled")
			if c == nil || c.Status != status || c.Reason != reason {
				return fmt.Sprintf("Stalled is %+v", c)
			}
			for _, text := range texts {
				if !strings.Contains(c.Message, text) {
					return fmt.Sprintf("Stalled lacks %q: %s", text, c.Message)
				}
			}
			r := meta.FindStatusCondition(md.Status.Conditions, "Reconciling")
			if status == metav1.ConditionTrue && (r == nil || r.Status != metav1.ConditionFalse) {
				return fmt.Sprintf("Reconciling is %+v", r)
			}
			return ""
		}, f.Describe)
	}
	await(metav1.ConditionTrue, "NoBudget", "1 of 2 Machines are available", "set spec.remediation.maxInFlight to 1 or more")
	f.Patch(t, md, `{"spec":{"remediation":{"maxInFlight":1}}}`)
	await(metav1.ConditionFalse, "NotStalled")
	f.AwaitDeployment(t, md.Name)
}
