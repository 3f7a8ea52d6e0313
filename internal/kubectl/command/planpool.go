package command

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		input.Labels = after.Labels
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
	pipeline, err := p.pipeline(c, live, u)
	if err != nil {
		return fn.Pool{}, fmt.Errorf("the offer of the platform: %w", mayNotRead(err))
	}
	return offerIn(pipeline)
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
	found, err := poolCompositions(p.ctx, c)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("there are %d Compositions of NodePools: name one in spec.crossplane.compositionRef of the pool", len(found))
	}
	return &found[0], nil
}
