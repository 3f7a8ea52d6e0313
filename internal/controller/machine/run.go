package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/jointoken"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/target"
	"github.com/drover-dev/drover/internal/workernode"
)

// rounds bounds how often the pipeline runs in one reconcile: once, again after the join token gave it new
// facts, and again after the Node did.
const rounds = 3

// facts about a Machine, collected once per reconcile.
type facts struct {
	machine  *machinev1alpha1.Machine
	revision string
	steps    []pipeline.Step
	observed composed
	join     jointoken.State
	// report of the cloud's inventory about the VM, nil if there is none.
	report *plan.InventoryReport
	// missingConfig of the provider, nil if it exists or is not known. configChecked means that it was looked for in this
	// reconcile.
	missingConfig *plan.MissingConfig
	configChecked bool
	// joinError is why the join token or the user data could not be created.
	joinError error
	// node is nil until the pipeline has decided on parameters for one.
	node *machineNode
	// applying is the record of the keys that the Node is about to get, nil at any other time.
	applying *machinev1alpha1.AppliedToNode
	// joinDue is when milestones of the join must be written that no other write included, 0 if there are none.
	joinDue time.Duration
}

// A decision is the result of the pipeline.
type decision struct {
	pipeline.Result
	bootstrap plan.Bootstrap
	vm        plan.VM
	node      *workernode.Parameters
}

// advance reconciles a Machine that is not being deleted.
func (r *Reconciler) advance(ctx context.Context, m *machinev1alpha1.Machine) (reconcile.Result, error) {
	chosen, err := r.choose(ctx, m)
	if err != nil {
		return reconcile.Result{}, r.fail(ctx, m, err)
	}
	if chosen.problem != nil {
		return reconcile.Result{RequeueAfter: time.Minute}, r.refuse(ctx, m, chosen.problem)
	}
	if chosen.pin {
		// The reconcile continues, since its own write does not enqueue another one.
		if err := r.pin(ctx, m, chosen.revision.GetName()); err != nil {
			return reconcile.Result{}, err
		}
	}
	f := &facts{machine: m, revision: chosen.revision.GetName()}
	if f.steps, err = r.steps.StepsOf(chosen.revision); err != nil {
		return reconcile.Result{}, r.fail(ctx, m, err)
	}
	if f.observed, err = r.observe(ctx, m, f.steps); err != nil {
		return reconcile.Result{}, r.fail(ctx, m, err)
	}
	var problem *plan.Problem
	if f.observed, problem, err = r.takeOver(ctx, m, f.steps, f.observed); err != nil {
		return reconcile.Result{}, r.fail(ctx, m, err)
	}
	if problem != nil {
		return reconcile.Result{RequeueAfter: afterError}, r.refuse(ctx, m, problem)
	}
	var vm metav1.Object
	if there := f.observed[machinev1alpha1.ResourceVM]; there != nil {
		vm = there
	}
	f.report = r.inventories.report(inventoryKindOf(f.steps), client.ObjectKeyFromObject(m), f.observed[machinev1alpha1.ResourceVM])
	if err := r.identify(ctx, m, vm); err != nil {
		return reconcile.Result{}, err
	}
	if f.join, err = r.tokens.Observe(ctx, m); err != nil {
		return reconcile.Result{}, r.fail(ctx, m, err)
	}
	d, err := r.settle(ctx, f)
	if err != nil {
		return r.unsettled(ctx, f, d, err)
	}
	return r.conclude(ctx, f, d)
}

// settle runs the pipeline until it has decided by all facts that are available now.
func (r *Reconciler) settle(ctx context.Context, f *facts) (decision, error) {
	if err := r.recallNode(ctx, f); err != nil {
		return decision{}, err
	}
	for round := 1; ; round++ {
		d, err := r.run(ctx, f)
		if err != nil || round == rounds {
			return d, err
		}
		changed := false
		if f.knowsNode(d) {
			changed = r.bootstrap(ctx, f, d)
		}
		synced, err := r.syncNode(ctx, f, d)
		if err != nil {
			return d, err
		}
		if !changed && !synced {
			return d, nil
		}
	}
}

// knowsNode reports whether the decision was made with the Node in the target cluster. A process that has just
// started reads the Node in its first round. Before that, a join token that was deleted since the Node joined
// would be missing, and be created again.
func (f *facts) knowsNode(d decision) bool { return d.node == nil || f.node != nil }

// runOnce runs the pipeline once.
func (r *Reconciler) runOnce(ctx context.Context, f *facts) (decision, error) {
	in, err := f.input()
	if err != nil {
		return decision{}, err
	}
	d := decision{}
	d.Result, err = r.runner.Run(ctx, f.steps, in)
	r.watches.require(types.NamespacedName{Namespace: f.machine.GetNamespace(), Name: f.machine.GetName()}, d.Required)
	if err != nil {
		return d, err
	}
	return d, d.decode()
}

func (d *decision) decode() error {
	node := workernode.WorkerNode{}
	for key, into := range map[string]any{step.ContextBootstrap: &d.bootstrap, step.ContextVM: &d.vm, step.ContextNode: &node} {
		v, ok := d.Context.GetFields()[key]
		if !ok {
			continue
		}
		b, err := protojson.Marshal(v)
		if err == nil {
			err = json.Unmarshal(b, into)
		}
		if err != nil {
			return fmt.Errorf("cannot decode the pipeline's context %q: %w", key, err)
		}
	}
	if node.Parameters.ProviderID != "" {
		d.node = &node.Parameters
	}
	return nil
}

// input returns the input of the pipeline: the Machine, its resources, and in the context the facts that no
// resource reports.
func (f *facts) input() (pipeline.Input, error) {
	in := pipeline.Input{Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{}}}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(f.machine)
	if err != nil {
		return in, err
	}
	if in.Observed.Composite, err = resourceOf(raw); err != nil {
		return in, err
	}
	for role, obj := range f.observed {
		if in.Observed.Resources[role], err = resourceOf(obj.Object); err != nil {
			return in, fmt.Errorf("%s %q: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	if f.join.Details != nil {
		if in.Observed.Resources[machinev1alpha1.ResourceUserData], err = f.userData(); err != nil {
			return in, err
		}
	}
	join := plan.JoinState{Published: f.join.Published, Hash: f.join.Hash}
	if join.Problem = jointoken.ProblemOf(f.joinError); join.Problem == nil && f.joinError != nil {
		join.Error = f.joinError.Error()
	}
	seeds := map[string]any{step.ContextJoin: join}
	if f.report != nil {
		seeds[step.ContextInventory] = f.report
	}
	if f.missingConfig != nil {
		seeds[step.ContextMissingConfig] = f.missingConfig
	}
	if f.node != nil {
		seeds[step.ContextNode] = f.node.WorkerNode
	}
	in.Context, err = contextOf(seeds)
	return in, err
}

// userData returns the Secret beside the Machine, as a resource with connection details.
func (f *facts) userData() (*fnv1.Resource, error) {
	s := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: f.machine.GetNamespace(), Name: names.UserData(f.machine.GetName(), f.machine.GetUID())},
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		return nil, err
	}
	res, err := resourceOf(raw)
	if err == nil {
		res.ConnectionDetails = f.join.Details
	}
	return res, err
}

func resourceOf(raw map[string]any) (*fnv1.Resource, error) {
	s, err := structpb.NewStruct(raw)
	if err == nil {
		return &fnv1.Resource{Resource: s}, nil
	}
	// The status may have types that only a JSON encoder knows, such as those that were decoded elsewhere.
	b, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	s = &structpb.Struct{}
	return &fnv1.Resource{Resource: s}, protojson.Unmarshal(b, s)
}

func contextOf(seeds map[string]any) (*structpb.Struct, error) {
	b, err := json.Marshal(seeds)
	if err != nil {
		return nil, err
	}
	s := &structpb.Struct{}
	return s, protojson.Unmarshal(b, s)
}

// conclude writes the decision: first to the Machine, then to its resources.
func (r *Reconciler) conclude(ctx context.Context, f *facts, d decision) (reconcile.Result, error) {
	if err := r.recordVM(ctx, f, d); err != nil {
		return reconcile.Result{}, err
	}
	written, err := r.report(ctx, f, d)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.launch(ctx, f, d, written); err != nil {
		return reconcile.Result{}, r.fail(ctx, f.machine, err)
	}
	return reconcile.Result{RequeueAfter: r.again(f, d)}, r.recovered(ctx, f.machine)
}

// again is when to reconcile again if no event arrives.
func (r *Reconciler) again(f *facts, d decision) time.Duration {
	after := d.TTL
	sooner := func(wish time.Duration) {
		if wish > 0 && (after == 0 || wish < after) {
			after = wish
		}
	}
	if f.node != nil {
		sooner(f.node.again)
		if f.node.Observation.Error != "" {
			sooner(afterError)
		}
	}
	sooner(f.joinDue)
	if f.missingConfig != nil {
		sooner(afterError)
	}
	switch {
	case target.Is(f.joinError, target.Busy):
		sooner(afterBusy)
	case f.joinError != nil:
		sooner(afterError)
	}
	if !f.join.Renew.IsZero() {
		sooner(max(f.join.Renew.Sub(r.now()), time.Second))
	}
	return after
}

// unsettled reports that the pipeline gave no result. The resources are not changed.
func (r *Reconciler) unsettled(ctx context.Context, f *facts, d decision, err error) (reconcile.Result, error) {
	var fatal *pipeline.FatalError
	if errors.As(err, &fatal) {
		return reconcile.Result{RequeueAfter: time.Minute}, r.reportFatal(ctx, f.machine, d, fatal)
	}
	return reconcile.Result{}, r.fail(ctx, f.machine, err)
}

// readyWhen returns the condition Ready, as the pipeline decided it.
func readyWhen(d decision) xpv2.Condition {
	if d.Desired.GetComposite().GetReady() == fnv1.Ready_READY_TRUE {
		return xpv2.Available()
	}
	return xpv2.Creating()
}
