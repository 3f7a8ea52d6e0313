package analysis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/text"
)

const (
	// lookAgain is when analyses with a problem are looked at again: their Secrets are not watched.
	lookAgain = time.Minute
	// namesInMessage is how many analyses of the namespace a message names.
	namesInMessage = 10
)

type reconciler struct {
	// client reads from the cache, and writes.
	client client.Client
	// live reads Secrets.
	live client.Reader
	// connect to the target cluster of a Machine.
	connect  func(context.Context, *machinev1alpha1.Machine) (cluster, error)
	networks target.Networks
	now      func() time.Time

	mu sync.Mutex
	// tried is when an analysis was last measured, by its run and its name. Measurements that are inconclusive
	// are in no status.
	tried map[types.NamespacedName]map[string]time.Time
}

// Reconcile looks for the analyses of a RolloutAnalysisRun, and measures those of its step.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	run := &machinev1alpha1.RolloutAnalysisRun{}
	if err := r.client.Get(ctx, req.NamespacedName, run); err != nil {
		if kerrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, err
	}
	if run.GetDeletionTimestamp() != nil || stored.Faults(run) != "" { // Its verdict would be about something else.
		r.forget(client.ObjectKeyFromObject(run))
		return reconcile.Result{}, nil
	}
	status := machinev1alpha1.RolloutAnalysisRunStatus{ObservedGeneration: run.Generation}
	found, err := r.find(ctx, run, &status)
	if err != nil {
		return reconcile.Result{}, err
	}
	again := time.Duration(0)
	if len(status.Problems) > 0 {
		again = lookAgain
	}
	if run.Spec.Step == nil {
		r.forget(client.ObjectKeyFromObject(run))
	} else if next, err := r.analyze(ctx, run, found, &status); err != nil {
		return reconcile.Result{}, err
	} else if next > 0 && (again == 0 || next < again) {
		again = next
	}
	if equality.Semantic.DeepEqual(run.Status, status) {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	run = run.DeepCopy()
	run.Status = status
	if err := r.client.Status().Update(ctx, run); err != nil {
		if kerrors.IsConflict(err) {
			// The verdict may be about another step. The cache soon gets the newer version, which causes a reconcile.
			return reconcile.Result{RequeueAfter: time.Second}, nil
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// find the analyses that a run names, with the problems of those that cannot be carried out.
func (r *reconciler) find(ctx context.Context, run *machinev1alpha1.RolloutAnalysisRun, status *machinev1alpha1.RolloutAnalysisRunStatus) (map[string]*machinev1alpha1.RolloutAnalysis, error) {
	found := map[string]*machinev1alpha1.RolloutAnalysis{}
	for _, name := range run.Spec.Analyses {
		a := &machinev1alpha1.RolloutAnalysis{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: name}, a)
		if kerrors.IsNotFound(err) {
			message, err := r.notFound(ctx, run.Namespace)
			if err != nil {
				return nil, err
			}
			status.Problems = append(status.Problems, machinev1alpha1.AnalysisProblem{Name: name, Reason: machinev1alpha1.ReasonAnalysisNotFound, Message: message})
			continue
		}
		if err != nil {
			return nil, err
		}
		problem, err := r.check(ctx, a)
		if err != nil {
			return nil, err
		}
		if problem != "" {
			status.Problems = append(status.Problems, machinev1alpha1.AnalysisProblem{
				Name: name, Reason: machinev1alpha1.ReasonAnalysisInvalid, Message: text.Shorten(fmt.Sprintf("RolloutAnalysis %s: %s", name, problem), maxMessage),
			})
			continue
		}
		status.Found = append(status.Found, name)
		found[name] = a
	}
	return found, nil
}

// notFound names the analyses that there are.
func (r *reconciler) notFound(ctx context.Context, namespace string) (string, error) {
	list := &machinev1alpha1.RolloutAnalysisList{}
	if err := r.client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", err
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	message := fmt.Sprintf("the namespace %s has no RolloutAnalysis of the name", namespace)
	switch n := len(names); {
	case n == 0:
		message += ", and no other one"
	case n <= namesInMessage:
		message += ": it must be one of " + strings.Join(names, ", ")
	default:
		message += fmt.Sprintf(": it must be one of %s and %d more", strings.Join(names[:namesInMessage], ", "), n-namesInMessage)
	}
	return message, nil
}

// check returns what a user must correct of an analysis, "" if nothing.
func (r *reconciler) check(ctx context.Context, a *machinev1alpha1.RolloutAnalysis) (string, error) {
	if faults := stored.Faults(a); faults != "" {
		return faults, nil
	}
	switch p := a.Spec.Prometheus; {
	case p == nil && a.Spec.Nodes == nil:
		return "spec: must have nodes or prometheus", nil
	case p == nil:
		return "", nil
	default:
		if _, err := condition(p); err != nil {
			return err.Error(), nil //nolint:nilerr // It is the mistake of a user.
		}
		_, problem, err := r.credentials(ctx, a)
		return problem, err
	}
}

// A fleet has the Machines with a Node of the new template, and of old ones, by name.
type fleet struct{ new, old []*machinev1alpha1.Machine }

// machinesOf returns the Machines with a Node of MachineSets.
func (r *reconciler) machinesOf(ctx context.Context, namespace string, sets ...string) ([]*machinev1alpha1.Machine, error) {
	var out []*machinev1alpha1.Machine
	for _, set := range sets {
		list := &machinev1alpha1.MachineList{}
		if err := r.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{machinev1alpha1.LabelSet: set}); err != nil {
			return nil, err
		}
		for i := range list.Items {
			if m := &list.Items[i]; m.DeletionTimestamp == nil && m.Status.NodeRef != nil {
				out = append(out, m)
			}
		}
	}
	slices.SortFunc(out, byName)
	return out, nil
}

// analyze measures what is due, and returns when the next measurement is. It is 0 if none is.
func (r *reconciler) analyze(ctx context.Context, run *machinev1alpha1.RolloutAnalysisRun, found map[string]*machinev1alpha1.RolloutAnalysis, status *machinev1alpha1.RolloutAnalysisRunStatus) (time.Duration, error) {
	status.Step = run.Spec.Step
	before := map[string]machinev1alpha1.AnalysisResult{}
	if s := run.Status.Step; s != nil && s.Rollout == status.Step.Rollout && s.Step == status.Step.Step && s.Since.Equal(&status.Step.Since) {
		for _, result := range run.Status.Results {
			before[result.Name] = result
		}
	} else {
		r.forget(client.ObjectKeyFromObject(run))
	}
	var f fleet
	var err error
	if f.new, err = r.machinesOf(ctx, run.Namespace, run.Spec.NewMachineSet); err != nil {
		return 0, err
	}
	if f.old, err = r.machinesOf(ctx, run.Namespace, run.Spec.OldMachineSets...); err != nil {
		return 0, err
	}
	next := time.Duration(0)
	for _, name := range run.Spec.Run {
		a := found[name]
		if a == nil {
			continue // Its problem makes the MachineDeployment invalid.
		}
		result, known := before[name]
		if !known || result.ObservedGeneration != a.Generation {
			result = begin(r.now(), a)
		}
		if !isFinal(result.Verdict) {
			left := max(wait(r.now(), a, result), r.sinceTried(client.ObjectKeyFromObject(run), a))
			if left <= 0 {
				r.setTried(client.ObjectKeyFromObject(run), name)
				result = add(r.now(), a, result, r.measure(ctx, a, run, f, result.StartTime.Time))
				left = interval(a)
			}
			if !isFinal(result.Verdict) && (next == 0 || left < next) {
				next = left
			}
		}
		status.Results = append(status.Results, result)
	}
	return next, nil
}

func (r *reconciler) measure(ctx context.Context, a *machinev1alpha1.RolloutAnalysis, run *machinev1alpha1.RolloutAnalysisRun, f fleet, since time.Time) measurement {
	if a.Spec.Nodes != nil {
		return r.measureNodes(ctx, a.Spec.Nodes, f, since)
	}
	return r.measurePrometheus(ctx, a, run, f)
}

// sinceTried returns how long the next measurement must wait, by the last one that was tried.
func (r *reconciler) sinceTried(run types.NamespacedName, a *machinev1alpha1.RolloutAnalysis) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.tried[run][a.Name]
	if !ok {
		return 0
	}
	return at.Add(interval(a)).Sub(r.now())
}

func (r *reconciler) setTried(run types.NamespacedName, analysis string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tried[run] == nil {
		r.tried[run] = map[string]time.Time{}
	}
	r.tried[run][analysis] = r.now()
}

func (r *reconciler) forget(run types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tried, run)
}
