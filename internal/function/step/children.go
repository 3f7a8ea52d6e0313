package step

import (
	"slices"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/internal/plan"
)

// Children returns all children of a kind that the XR controls, sorted by name: those among its
// references, and those that the requirement found. It returns false while Crossplane has not looked
// for the requirement yet.
func Children(req *fnv1.RunFunctionRequest, requirement, kind string, owner types.UID) ([]plan.Child, bool) {
	found, ok := Required(req, requirement)
	if !ok {
		return nil, false
	}
	children := map[string]plan.Child{}
	ours := map[string]bool{}
	for _, o := range found {
		if o.GetName() == "" {
			continue // An object without a name must not count as a further child.
		}
		children[o.GetName()] = plan.Child{Object: o, Terminating: o.GetDeletionTimestamp() != nil}
		ours[o.GetName()] = isControlledBy(o, owner)
	}
	for name, o := range Observed(req) {
		if o.GetKind() != kind {
			continue
		}
		if o.GetName() == "" {
			o.SetName(name) // The name of a set's composed resource is also that of the object.
		}
		c, ok := children[o.GetName()]
		if !ok {
			c.Object = o
		}
		c.Observed = true
		c.Terminating = c.Terminating || o.GetDeletionTimestamp() != nil
		children[o.GetName()] = c
		// If the two views differ, the object counts as controlled, so that it is kept.
		ours[o.GetName()] = ours[o.GetName()] || isControlledBy(o, owner)
	}

	out := make([]plan.Child, 0, len(children))
	for name, c := range children {
		if ours[name] {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b plan.Child) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out, true
}

func isControlledBy(o plan.Object, owner types.UID) bool {
	by := metav1.GetControllerOfNoCopy(o)
	return by != nil && by.UID == owner
}

// Others returns the objects of the requirement that the XR does not control, sorted by name, without
// those that are being deleted: orphans have no controller, and foreign ones have another one.
func Others(req *fnv1.RunFunctionRequest, requirement string, owner types.UID) (orphans, foreign []plan.Object) {
	found, _ := Required(req, requirement)
	slices.SortFunc(found, func(a, b plan.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, o := range found {
		by := metav1.GetControllerOfNoCopy(o)
		switch {
		case o.GetDeletionTimestamp() != nil:
		case by == nil:
			orphans = append(orphans, o)
		case by.UID != owner:
			foreign = append(foreign, o)
		}
	}
	return orphans, foreign
}
