package step

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/healthprofile"
	"github.com/drover-dev/drover/internal/osprofile"
	"github.com/drover-dev/drover/internal/plan"
)

// Requirements that several steps have.
const (
	requirementClass        = "class"
	requirementCluster      = "cluster"
	requirementCompositions = "compositions"
	requirementInstallation = "installation"
	requirementProfile      = "profile"
	// Requirements of HealthProfiles end with their names.
	requirementHealthProfile = "health-profile-"
)

// Class requires a Machine's class, of either kind. It returns nil and a problem if there is none, or
// none that serves the Machine's namespace. The problem names the XR's field that has the class's
// name. The last result is false while Crossplane has not looked for the class yet.
func (r Response) Class(req *fnv1.RunFunctionRequest, m *machinev1alpha1.Machine, field string) (*machinev1alpha1.MachineClass, *plan.Problem, bool) {
	kind, namespace := machinev1alpha1.MachineClassGroupVersionKind.Kind, m.Namespace
	if m.Spec.ClassRef.IsCluster() {
		kind, namespace = m.Spec.ClassRef.Kind, ""
	}
	r.RequireByName(requirementClass, machinev1alpha1.SchemeGroupVersion.String(), kind, namespace, m.Spec.ClassRef.Name)
	found, ok := Required(req, requirementClass)
	if !ok {
		return nil, nil, false
	}
	if len(found) == 0 {
		return nil, plan.NoClass(m, field), true
	}
	c, problem := classOf(found[0], m, field)
	return c, problem, true
}

// classOf decodes a required class.
func classOf(o plan.Object, m *machinev1alpha1.Machine, field string) (*machinev1alpha1.MachineClass, *plan.Problem) {
	if !m.Spec.ClassRef.IsCluster() {
		c, err := As[machinev1alpha1.MachineClass](o)
		if err != nil {
			return nil, &plan.Problem{Reason: machinev1alpha1.ReasonClassNotFound, Message: err.Error()}
		}
		return c, nil
	}
	c, err := As[machinev1alpha1.ClusterMachineClass](o)
	if err != nil {
		return nil, &plan.Problem{Reason: machinev1alpha1.ReasonClassNotFound, Message: err.Error()}
	}
	if problem := plan.Admit(c, m, field); problem != nil {
		return nil, problem
	}
	return c.AsMachineClass(), nil
}

// Profile returns the OperatingSystemProfile of a class: a built-in one, or else a required object.
// It returns nil if the class names none, and a problem if no profile has the name. The last result
// is false while Crossplane has not looked for it yet.
func (r Response) Profile(req *fnv1.RunFunctionRequest, class *machinev1alpha1.MachineClass) (*machinev1alpha1.OperatingSystemProfile, *plan.Problem, bool) {
	name := class.Spec.OperatingSystem.Profile
	if name == "" {
		return nil, nil, true
	}
	if p := osprofile.BuiltIn(name); p != nil {
		return p, nil, true
	}
	r.RequireByName(requirementProfile, machinev1alpha1.SchemeGroupVersion.String(), machinev1alpha1.OperatingSystemProfileGroupVersionKind.Kind, "", name)
	found, ok := Required(req, requirementProfile)
	if !ok {
		return nil, nil, false
	}
	if len(found) == 0 {
		return nil, plan.NoProfile(class, osprofile.Names()), true
	}
	p, err := As[machinev1alpha1.OperatingSystemProfile](found[0])
	if err != nil {
		return nil, &plan.Problem{Reason: machinev1alpha1.ReasonProfileNotFound, Message: err.Error()}, true
	}
	return p, nil, true
}

// HealthProfiles returns the profiles that a health names: built-in ones, or else required objects. The last result is false
// while Crossplane has not looked for them yet.
func (r Response) HealthProfiles(req *fnv1.RunFunctionRequest, h machinev1alpha1.Health) (plan.HealthProfiles, bool) {
	var out plan.HealthProfiles
	complete := true
	for _, name := range h.Profiles {
		if p := healthprofile.BuiltIn(name); p != nil {
			out.Found = append(out.Found, p)
			continue
		}
		r.RequireByName(requirementHealthProfile+name, machinev1alpha1.SchemeGroupVersion.String(), machinev1alpha1.HealthProfileGroupVersionKind.Kind, "", name)
		found, looked := Required(req, requirementHealthProfile+name)
		if !looked {
			complete = false
			continue
		}
		// One that cannot be decoded has no conditions to judge by.
		var p *machinev1alpha1.HealthProfile
		if len(found) > 0 {
			p, _ = As[machinev1alpha1.HealthProfile](found[0])
		}
		if p == nil {
			out.Missing = append(out.Missing, name)
			continue
		}
		out.Found = append(out.Found, p)
	}
	return out, complete
}

// Composition requires the Compositions of a class's provider. It returns the one for the class's
// Machines, or a problem if there is none. The last result is false while Crossplane has not looked
// for them yet.
func (r Response) Composition(req *fnv1.RunFunctionRequest, class *machinev1alpha1.MachineClass) (plan.Object, *plan.Problem, bool) {
	labels := map[string]string{machinev1alpha1.LabelProvider: class.Spec.Provider}
	r.RequireByLabels(requirementCompositions, "apiextensions.crossplane.io/v1", "Composition", "", labels)
	compositions, looked := Required(req, requirementCompositions)
	if !looked {
		return plan.Object{}, nil, false
	}
	compositions = slices.DeleteFunc(compositions, func(c plan.Object) bool { return !plan.ComposesMachines(c.Unstructured) })
	if len(compositions) == 0 {
		return plan.Object{}, plan.NoComposition(class), true
	}
	// Any of them works; the minimum makes the choice stable.
	return slices.MinFunc(compositions, func(a, b plan.Object) int { return strings.Compare(a.GetName(), b.GetName()) }), nil, true
}

// Cluster requires the configuration of the cluster that Machines of a namespace join, of either
// kind. Crossplane does not watch it. It returns nil and a problem if there is none that can be read. The problem names
// the XR's field that has the reference. The last result is false while Crossplane has not looked for it yet.
func (r Response) Cluster(req *fnv1.RunFunctionRequest, namespace string, ref machinev1alpha1.ClusterReference, field string) (*clusterv1alpha1.ClusterProviderConfig, *plan.Problem, bool) {
	// What is rendered without an API server has no defaults of the schema.
	ref.Kind, ref.Name = cmp.Or(ref.Kind, clusterv1alpha1.ClusterProviderConfigGroupVersionKind.Kind), cmp.Or(ref.Name, "default")
	if ref.Kind != clusterv1alpha1.ProviderConfigGroupVersionKind.Kind {
		namespace = ""
	}
	r.RequireByName(requirementCluster, clusterv1alpha1.SchemeGroupVersion.String(), ref.Kind, namespace, ref.Name)
	found, ok := Required(req, requirementCluster)
	if !ok {
		return nil, nil, false
	}
	if len(found) == 0 {
		return nil, plan.NoCluster(namespace, ref, field), true
	}
	c, err := As[clusterv1alpha1.ClusterProviderConfig](found[0])
	if err != nil {
		return nil, &plan.Problem{Reason: machinev1alpha1.ReasonNotDecodable, Message: fmt.Sprintf("%s %q: %s", ref.Kind, ref.Name, err)}, true
	}
	return c, nil, true
}

// Installation requires the ID of this installation of Drover: its VMs carry it, so that they are not
// mistaken for VMs of another installation in the same account. The last result is false while
// Crossplane has not looked for it yet.
func (r Response) Installation(req *fnv1.RunFunctionRequest) (string, *plan.Problem, bool) {
	r.RequireByName(requirementInstallation, "apiextensions.crossplane.io/v2", "CompositeResourceDefinition", "", machinev1alpha1.DefinitionOfInstallation)
	found, ok := Required(req, requirementInstallation)
	if !ok {
		return "", nil, false
	}
	if len(found) == 0 || found[0].GetUID() == "" {
		return "", plan.NoInstallation(), true
	}
	return string(found[0].GetUID()), nil, true
}
