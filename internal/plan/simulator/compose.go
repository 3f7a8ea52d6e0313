package simulator

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Errors that abort a reconcile.
var (
	errConflict = errors.New("conflict")
	errCrash    = errors.New("crash")
	errInvalid  = errors.New("a reference of a namespaced composite resource has no field for a UID")
)

// A child as a function sees it.
type child[C any] struct {
	object                C
	observed, terminating bool
}

// A composer reconciles one composite resource as Crossplane's FunctionComposer does, in the same
// order and with the same preconditions.
type composer[X resource[X], C resource[C]] struct {
	composites *store[X]
	children   *store[C]
	// views of composites and children.
	compositeView *cache[X]
	childView     *cache[C]

	// plan returns the desired children, and a function that writes the status.
	plan func(xr X, children []child[C]) (desired []C, status func(X))
	// adopts reports whether the composite resource adopts a child without a controller. It is nil
	// if it never does.
	adopts func(xr X, ch C) bool
	// apply the desired state to an existing child, and report whether its spec changed.
	apply func(existing, desired C) bool
	// created and deleted are called with the children that are created and deleted.
	created, deleted func(C)
}

// reconcile the composite resource by its views. crash is called before each write, and reports
// whether to abort. order returns an order of n writes.
func (c *composer[X, C]) reconcile(name string, crash func() bool, order func(n int) []int) error {
	xr, ok := c.compositeView.get(name)
	if !ok || xr.object.GetDeletionTimestamp() != nil {
		return nil
	}
	uid := xr.object.GetUID()
	children := c.observe(xr)
	desired, status := c.plan(xr.object.DeepCopy(), children)

	if err := c.collectGarbage(children, desired, crash); err != nil {
		return err
	}

	now, ok := c.composites.get(name)
	if !ok || now.object.GetUID() != uid {
		return errConflict
	}
	refs := make([]string, 0, len(desired))
	for _, d := range desired {
		if d.GetUID() != "" {
			return errInvalid
		}
		refs = append(refs, d.GetName())
	}
	slices.Sort(refs)
	if !slices.Equal(refs, now.refs) {
		now.object.SetGeneration(now.object.GetGeneration() + 1)
		c.composites.put(now.object, refs)
	}

	for _, i := range order(len(desired)) {
		if crash() {
			return errCrash
		}
		if err := c.write(xr.object, desired[i]); err != nil {
			return err
		}
	}

	if crash() {
		return errCrash
	}
	now, ok = c.composites.unchanged(xr.object)
	if !ok {
		return errConflict
	}
	status(now.object)
	if !equal(c.composites.last[name].object, now.object) {
		c.composites.put(now.object, now.refs)
	}
	return nil
}

func (c *composer[X, C]) observe(xr entry[X]) []child[C] {
	children := map[string]child[C]{}
	for _, o := range c.childView.list() {
		children[o.GetName()] = child[C]{object: o}
	}
	for _, name := range xr.refs {
		e, ok := c.childView.get(name)
		if !ok {
			// Crossplane reads an object from the API server if its cache does not have it.
			e, ok = c.children.get(name)
		}
		if ok {
			children[name] = child[C]{object: e.object, observed: true}
		}
	}
	var out []child[C]
	for _, ch := range children {
		if !c.isChild(xr.object, ch.object) {
			continue
		}
		ch.terminating = ch.object.GetDeletionTimestamp() != nil
		out = append(out, ch)
	}
	slices.SortFunc(out, func(a, b child[C]) int { return byName(a.object, b.object) })
	return out
}

// isChild reports whether the composite resource controls an object, or adopts it.
func (c *composer[X, C]) isChild(xr X, o C) bool {
	if by := metav1.GetControllerOf(o); by != nil {
		return by.UID == xr.GetUID()
	}
	return c.adopts != nil && c.adopts(xr, o)
}

func (c *composer[X, C]) collectGarbage(observed []child[C], desired []C, crash func() bool) error {
	for _, o := range observed {
		name := o.object.GetName()
		if !o.observed || slices.ContainsFunc(desired, func(d C) bool { return d.GetName() == name }) {
			continue
		}
		if crash() {
			return errCrash
		}
		if _, exists := c.children.get(name); !exists {
			continue
		}
		// Crossplane updates before it deletes.
		now, ok := c.children.unchanged(o.object)
		if !ok {
			return errConflict
		}
		if now.object.GetDeletionTimestamp() == nil {
			now.object.SetDeletionTimestamp(ptr.To(metav1.Now()))
			c.children.put(now.object, now.refs)
			c.deleted(now.object)
		}
	}
	return nil
}

func (c *composer[X, C]) write(xr X, d C) error {
	now, ok := c.children.get(d.GetName())
	owner := []metav1.OwnerReference{{Name: xr.GetName(), UID: xr.GetUID(), Controller: ptr.To(true)}}
	if ok && metav1.GetControllerOf(now.object) == nil {
		now.object.SetOwnerReferences(owner)
	}
	switch {
	case !ok:
		d = d.DeepCopy()
		d.SetOwnerReferences(owner)
		d.SetGeneration(1)
		c.created(d)
		c.children.put(d, nil)
		return nil
	case metav1.GetControllerOf(now.object).UID != xr.GetUID():
		return errConflict
	}
	if c.apply(now.object, d) {
		now.object.SetGeneration(now.object.GetGeneration() + 1)
	}
	if !equal(c.children.last[d.GetName()].object, now.object) {
		c.children.put(now.object, now.refs)
	}
	return nil
}
