package command

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/forecast"
)

// inputVersion is the API of the inputs of Drover's steps.
const inputVersion = fn.Group + "/" + fn.Version

// crossplane is the API of Compositions.
var crossplane = schema.GroupVersion{Group: "apiextensions.crossplane.io", Version: "v1"}

// pool forecasts the change of a NodePool.
func (p *planner) pool(u *unstructured.Unstructured) ([]forecast.Forecast, error) {
	c, err := p.connect()
	if err != nil {
		return nil, err
	}
	before, after := &machinev1alpha1.NodePool{}, &machinev1alpha1.NodePool{}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(machinev1alpha1.NodePoolGroupVersionKind)
	if err := client.IgnoreNotFound(c.Get(p.ctx, client.ObjectKeyFromObject(u), live)); err != nil {
		return nil, err
	}
	if err := p.dryRun(c, before, u, after); err != nil {
		return nil, err
	}
	after.Status = before.Status
	in := forecast.PoolInput{After: after}
	if in.Offer, err = p.offer(c, live, u); err != nil {
		return nil, err
	}
	v, err := p.look(c, u.GetNamespace())
	if err != nil {
		return nil, err
	}
	for _, d := range v.DeploymentsOf(before) {
		in.Deployments = append(in.Deployments, *d)
	}
	var failed error
	in.Of = func(d *machinev1alpha1.MachineDeployment) forecast.Input {
		is := v.Deployment(d.Namespace, d.Name)
		if is == nil {
			is = d
		}
		input, err := p.input(c, v, is, d)
		if err != nil {
			failed = err
		}
		return input
	}
	all := forecast.OfPool(p.now(), in)
	return all, failed
}

// offer returns the offer of the platform: the input of the step Pool in the CompositionRevision that the pool
// follows, or in the Composition that it names. A new pool that names none follows the only one.
func (p *planner) offer(c client.Client, live, u *unstructured.Unstructured) (fn.Pool, error) {
	offer := fn.Pool{}
	pipeline, err := p.pipeline(c, live, u)
	if err != nil {
		return offer, fmt.Errorf("the offer of the platform: %w", err)
	}
	steps, _, _ := unstructured.NestedSlice(pipeline.Object, "spec", "pipeline")
	for _, s := range steps {
		step, _ := s.(map[string]any)
		input, _ := step["input"].(map[string]any)
		if input["kind"] == "Pool" && input["apiVersion"] == inputVersion {
			return offer, runtime.DefaultUnstructuredConverter.FromUnstructured(input, &offer)
		}
	}
	return offer, fmt.Errorf("%s %q has no step with an input of the kind Pool of %s", pipeline.GetKind(), pipeline.GetName(), inputVersion)
}

func (p *planner) pipeline(c client.Client, live, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{}
	for _, ref := range []struct{ kind, field string }{{"CompositionRevision", "compositionRevisionRef"}, {"Composition", "compositionRef"}} {
		for _, o := range []*unstructured.Unstructured{live, u} {
			if name, _, _ := unstructured.NestedString(o.Object, "spec", "crossplane", ref.field, "name"); name != "" {
				out.SetGroupVersionKind(crossplane.WithKind(ref.kind))
				return out, c.Get(p.ctx, client.ObjectKey{Name: name}, out)
			}
		}
	}
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(crossplane.WithKind("CompositionList"))
	if err := c.List(p.ctx, l); err != nil {
		return nil, err
	}
	var found []unstructured.Unstructured
	for _, o := range l.Items {
		if kind, _, _ := unstructured.NestedString(o.Object, "spec", "compositeTypeRef", "kind"); kind == machinev1alpha1.NodePoolGroupVersionKind.Kind {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("there are %d Compositions of NodePools: name one in spec.crossplane.compositionRef of the pool", len(found))
	}
	return &found[0], nil
}
