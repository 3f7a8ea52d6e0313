package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/healthprofile"
)

// HealthProfiles are the profiles that a health names.
type HealthProfiles struct {
	// Found profiles, in the order of their names in the health.
	Found []*machinev1alpha1.HealthProfile
	// Missing are the names of profiles that do not exist.
	Missing []string
}

// HealthFacts are what is known about the Machines of a health.
type HealthFacts struct {
	HealthProfiles
	// Class of the Machines, nil if it is not known.
	Class *machinev1alpha1.MachineClass
	// CannotReboot is true if the provider of the class is known not to reboot VMs.
	CannotReboot bool
}

// HealthProblems returns the parts of a health that cannot be carried out as they are written. The field is its path. Without
// a class, only profiles can be judged.
func HealthProblems(h machinev1alpha1.Health, f HealthFacts, field string) []Problem {
	var out []Problem
	if len(f.Missing) > 0 {
		names := make([]string, 0, len(f.Missing))
		for _, name := range f.Missing {
			names = append(names, fmt.Sprintf("%q", name))
		}
		out = append(out, Problem{
			Reason: machinev1alpha1.ReasonHealthProfileNotFound,
			Message: fmt.Sprintf("%s.profiles: there is no HealthProfile %s, and the built-in ones are %s; the Nodes are judged without it",
				field, strings.Join(names, ", "), strings.Join(healthprofile.Names(), ", ")),
		})
	}
	if h.Disabled || f.Class == nil {
		return out
	}
	rules := healthprofile.Rules(h, f.Found)
	if JudgesDevices(rules) && len(DevicesOf(f.Class)) == 0 {
		out = append(out, Problem{
			Reason:  machinev1alpha1.ReasonDevicesNotNamed,
			Message: fmt.Sprintf("%s: %s has no effect: spec.nodeCapacity.capacity of %s names no device, such as nvidia.com/gpu", field, machinev1alpha1.NodeDevicesMissing, f.Class.Reference()),
		})
	}
	var reboots []string
	for _, r := range rules {
		if r.Action == machinev1alpha1.HealthActionReboot {
			reboots = append(reboots, r.Type)
		}
	}
	if slices.Sort(reboots); f.CannotReboot && len(reboots) > 0 {
		out = append(out, Problem{
			Reason: machinev1alpha1.ReasonRebootNotSupported,
			Message: fmt.Sprintf("%s: provider %q cannot reboot VMs: the action Reboot of %s means Replace",
				field, f.Class.Spec.Provider, strings.Join(slices.Compact(reboots), ", ")),
		})
	}
	return out
}

// HealthValid returns the condition of the given problems. It is nil for an object that has none, and whose conditions before
// lack it.
func HealthValid(problems []Problem, before []metav1.Condition) *Condition {
	c := &Condition{Type: machinev1alpha1.ConditionHealthValid, Status: "True", Reason: machinev1alpha1.ReasonValid}
	if len(problems) == 0 {
		if !c.IsKnown(before) {
			return nil
		}
		return c
	}
	c.Status, c.Reason = "False", problems[0].Reason
	texts := make([]string, 0, len(problems))
	for _, p := range problems {
		texts = append(texts, p.Message)
	}
	c.Message = strings.Join(texts, "; ")
	return c
}

// A Reporter is an object whose condition another one passes on.
type Reporter struct {
	// Name with the kind, such as "MachineSet x".
	Name       string
	Conditions []metav1.Condition
}

// HealthValidOf returns the condition of an object by those that it made: the first one that is False. It is nil if none of them
// is, and the conditions before lack it.
func HealthValidOf(of []Reporter, before []metav1.Condition) *Condition {
	for _, r := range of {
		if c := meta.FindStatusCondition(r.Conditions, machinev1alpha1.ConditionHealthValid); c != nil && c.Status == metav1.ConditionFalse {
			return &Condition{Type: c.Type, Status: "False", Reason: c.Reason, Message: r.Name + ": " + c.Message}
		}
	}
	return HealthValid(nil, before)
}

// JudgesDevices reports whether rules judge the devices of Nodes.
func JudgesDevices(rules []healthprofile.Rule) bool {
	return slices.ContainsFunc(rules, func(r healthprofile.Rule) bool { return r.Type == machinev1alpha1.NodeDevicesMissing })
}

// DevicesOf returns the devices that a class names, and how many of each.
func DevicesOf(class *machinev1alpha1.MachineClass) machinev1alpha1.Devices {
	if class == nil || class.Spec.NodeCapacity == nil {
		return nil
	}
	return machinev1alpha1.DevicesIn(class.Spec.NodeCapacity.Capacity)
}

// MissingDevices describes the devices of which there are fewer than wanted, such as "nvidia.com/gpu: 7 of 8", in the order
// of their names. It is "" if there are all. Others do not count.
func MissingDevices(wanted, there machinev1alpha1.Devices) string {
	var out []string
	for name, n := range wanted {
		if has := max(0, there[name]); has < n {
			out = append(out, fmt.Sprintf("%s: %d of %d", name, has, n))
		}
	}
	slices.Sort(out)
	if len(out) > maxShownDevices {
		out = append(out[:maxShownDevices], fmt.Sprintf("%d more", len(out)-maxShownDevices))
	}
	return strings.Join(out, ", ")
}

// maxShownDevices is how many devices a message names. The rest is counted.
const maxShownDevices = 4
