package diagnosis

import (
	"fmt"
	"slices"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// A Replacement is a Machine that was replaced, as the status of a NodePool, MachineDeployment or MachineSet lists
// it.
type Replacement struct {
	// Of is the object whose Machine it was.
	Of view.Ref `json:"of"`
	machinev1alpha1.ReplacedMachine
}

// By names the user or the rule that caused the replacement.
func (r Replacement) By() string {
	switch r.Reason {
	case machinev1alpha1.ReplacedFailed:
		return "rule spec.remediation"
	case machinev1alpha1.ReplacedRollout:
		return fmt.Sprintf("rollout of revision %d", r.Revision)
	case machinev1alpha1.ReplacedAged:
		return "rule spec.rollout.maxAge"
	case machinev1alpha1.ReplacedRequested:
		if r.RequestedBy != "" {
			return "user " + r.RequestedBy
		}
		return "annotation " + machinev1alpha1.AnnotationReplace
	case machinev1alpha1.ReplacedDeleted:
		return "unknown: see the audit log"
	case machinev1alpha1.ReplacedRebooted, machinev1alpha1.ReplacedRebootFailed:
		if r.FailureReason != "" {
			return "rule spec.health"
		}
		return "annotation " + machinev1alpha1.AnnotationReboot
	}
	return ""
}

// Why is the reason, with that of the failure if there was one.
func (r Replacement) Why() string {
	if r.FailureReason == "" {
		return string(r.Reason)
	}
	return fmt.Sprintf("%s: %s", r.Reason, r.FailureReason)
}

// Replacements returns the last replacements of one object, oldest first. Without one, they are those of all
// NodePools, of the MachineDeployments without a NodePool, and of the MachineSets without a MachineDeployment.
func Replacements(v *view.View, only *view.Ref) ([]Replacement, error) {
	out := []Replacement{}
	add := func(kind, namespace, name string, all []machinev1alpha1.ReplacedMachine) {
		for _, r := range all {
			out = append(out, Replacement{Of: view.Ref{Kind: kind, Namespace: namespace, Name: name}, ReplacedMachine: r})
		}
	}
	if only != nil {
		all, found := replacementsOf(v, *only)
		if !found {
			return nil, notFound(v, *only)
		}
		add(only.Kind, only.Namespace, only.Name, all)
		return out, nil
	}
	for i := range v.Pools {
		add(view.NodePool, v.Pools[i].Namespace, v.Pools[i].Name, v.Pools[i].Status.Replacements)
	}
	for _, d := range v.LoneDeployments() {
		add(view.MachineDeployment, d.Namespace, d.Name, d.Status.Replacements)
	}
	for _, s := range v.LoneSets() {
		add(view.MachineSet, s.Namespace, s.Name, s.Status.Replacements)
	}
	slices.SortStableFunc(out, func(a, b Replacement) int { return a.Time.Compare(b.Time.Time) })
	return out, nil
}

func replacementsOf(v *view.View, ref view.Ref) ([]machinev1alpha1.ReplacedMachine, bool) {
	switch ref.Kind {
	case view.NodePool:
		if p := v.Pool(ref.Namespace, ref.Name); p != nil {
			return p.Status.Replacements, true
		}
	case view.MachineDeployment:
		if d := v.Deployment(ref.Namespace, ref.Name); d != nil {
			return d.Status.Replacements, true
		}
	case view.MachineSet:
		if s := v.Set(ref.Namespace, ref.Name); s != nil {
			return s.Status.Replacements, true
		}
	}
	return nil, false
}

// notFound is the error for an object that does not exist. If it is a Machine that was replaced, the error has
// the reason.
func notFound(v *view.View, ref view.Ref) error {
	err := view.NotFound(ref)
	if ref.Kind != view.Machine {
		return err
	}
	all, _ := Replacements(v, nil)
	for _, r := range all {
		if r.Machine == ref.Name && r.Of.Namespace == ref.Namespace && !r.Reason.IsReboot() {
			return fmt.Errorf("%w: it was replaced at %s (%s; by: %s); kubectl drover history %s -n %s shows more",
				err, r.Time.UTC().Format(time.RFC3339), r.Why(), r.By(), r.Of, ref.Namespace)
		}
	}
	return err
}
