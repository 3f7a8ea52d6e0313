package machine

import (
	"context"
	"encoding/json"
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/jointoken"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

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
