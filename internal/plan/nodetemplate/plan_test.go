package nodetemplate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/vm"
)

func ref(change ...func(*machinev1alpha1.InfrastructureReference)) *machinev1alpha1.InfrastructureReference {
	r := &machinev1alpha1.InfrastructureReference{APIVersion: "machine.drover.dev/v1alpha1", Kind: "NodeTemplate", Name: "web"}
	for _, c := range change {
		c(r)
	}
	return r
}

func class(capacity corev1.ResourceList) *machinev1alpha1.MachineClass {
	c := &machinev1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "small"}}
	c.Spec.NodeCapacity = &machinev1alpha1.NodeCapacity{Capacity: capacity, Architecture: "arm64", OperatingSystem: "linux"}
	return c
}

func resources(of ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(of); i += 2 {
		out[corev1.ResourceName(of[i])] = resource.MustParse(of[i+1])
	}
	return out
}

func there(owner string, status machinev1alpha1.NodeTemplateStatus) *machinev1alpha1.NodeTemplate {
	t := &machinev1alpha1.NodeTemplate{Status: status}
	t.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: "web", UID: "uid-of-" + "set", Controller: ptr.To(true)}}
	if owner == "web" {
		t.OwnerReferences[0].Kind, t.OwnerReferences[0].UID = "MachineDeployment", "uid"
	}
	return t
}

func TestPlan(t *testing.T) {
	known := machinev1alpha1.NodeTemplateStatus{
		Capacity: resources("cpu", "2", "memory", "4Gi", "nvidia.com/gpu", "1"), NodeInfo: machinev1alpha1.NodeTemplateInfo{Architecture: "arm64", OperatingSystem: "linux"},
	}
	withPods := *known.DeepCopy()
	withPods.Capacity["pods"] = resource.MustParse("32")
	limited := class(resources("cpu", "2", "memory", "4Gi", "nvidia.com/gpu", "1", "pods", "110"))
	limited.Spec.Kubelet.MaxPods = ptr.To(int32(32))
	cluster := class(nil)
	cluster.Kind = "ClusterMachineClass"
	without := class(nil)
	without.Spec.NodeCapacity = nil
	derived := &machinev1alpha1.NodeCapacity{Capacity: resources("cpu", "4", "memory", "8Gi"), Architecture: "amd64"}
	device := class(resources("nvidia.com/gpu", "1"))
	for name, tc := range map[string]struct {
		why   string
		ref   *machinev1alpha1.InfrastructureReference
		class *machinev1alpha1.MachineClass
		there *machinev1alpha1.NodeTemplate
		// derived by the Composition, or the reason why it could not.
		derived    *machinev1alpha1.NodeCapacity
		notDerived string
		// status of the NodeTemplate, nil if there is none.
		status          *machinev1alpha1.NodeTemplateStatus
		reason, message string
	}{
		"WithoutAReference":           {why: "Nothing reads it.", class: class(known.Capacity)},
		"AKindOfAUser":                {why: "Drover knows nothing of it.", class: class(known.Capacity), ref: ref(func(r *machinev1alpha1.InfrastructureReference) { r.Kind = "Sizes" })},
		"ANodeTemplateOfAnotherGroup": {why: "It is another kind.", class: class(known.Capacity), ref: ref(func(r *machinev1alpha1.InfrastructureReference) { r.APIVersion = "karpenter.sh/v1" })},
		"OfAClassWithCapacity":        {why: "All resources count.", ref: ref(), class: class(known.Capacity), status: &known, reason: "NodeCapacityKnown"},
		"ThatNoAPIServerDefaulted": {why: "An offline render has none.", class: class(known.Capacity), status: &known, reason: "NodeCapacityKnown",
			ref: ref(func(r *machinev1alpha1.InfrastructureReference) { r.Kind, r.APIVersion = "", "" })},
		"OfAClassWithMaxPods": {why: "The kubelet reports these.", ref: ref(), class: limited, status: &withPods, reason: "NodeCapacityKnown"},
		"ThatIsItsOwnAlready": {why: "It is kept.", ref: ref(), class: class(known.Capacity), there: there("web", known), status: &known, reason: "NodeCapacityKnown"},
		"OfAClassWithoutMemory": {why: "The autoscaler needs both.", ref: ref(), class: class(resources("cpu", "2")),
			status: &machinev1alpha1.NodeTemplateStatus{Capacity: resources("cpu", "2"), NodeInfo: known.NodeInfo}, reason: "NodeCapacityUnknown",
			message: `MachineClass "small" has no cpu and memory in spec.nodeCapacity.capacity: the cluster-autoscaler cannot scale up from zero`},
		"OfAClassWithNoCPU": {why: "No pod fits.", ref: ref(), class: class(resources("cpu", "0", "memory", "1Gi")),
			status: &machinev1alpha1.NodeTemplateStatus{Capacity: resources("cpu", "0", "memory", "1Gi"), NodeInfo: known.NodeInfo}, reason: "NodeCapacityUnknown",
			message: `MachineClass "small" has no cpu and memory in spec.nodeCapacity.capacity: the cluster-autoscaler cannot scale up from zero`},
		"OfAClusterMachineClassWithoutCapacity": {why: "The kind is named.", ref: ref(), class: cluster,
			status: &machinev1alpha1.NodeTemplateStatus{NodeInfo: known.NodeInfo}, reason: "NodeCapacityUnknown",
			message: `ClusterMachineClass "small" has no cpu and memory in spec.nodeCapacity.capacity: the cluster-autoscaler cannot scale up from zero`},
		"OfAClassThatShowsNothing": {why: "There is nothing to show.", ref: ref(), class: without, status: &machinev1alpha1.NodeTemplateStatus{}, reason: "NodeCapacityUnknown",
			message: `MachineClass "small" has no cpu and memory in spec.nodeCapacity.capacity: the cluster-autoscaler cannot scale up from zero`},
		"OfWhatTheClassAsksOfTheCloud": {why: "The kernel keeps some of the memory.", ref: ref(), class: without, derived: derived, status: &machinev1alpha1.NodeTemplateStatus{
			Capacity: resources("cpu", "4", "memory", "7577Mi"), NodeInfo: machinev1alpha1.NodeTemplateInfo{Architecture: "amd64"},
		}, reason: "NodeCapacityKnown"},
		"OfAClassThatShowsOtherwise": {why: "The user knows best.", ref: ref(), class: class(known.Capacity), derived: derived, status: &known, reason: "NodeCapacityKnown"},
		"OfAClassThatAddsADevice": {why: "The cloud's cpu and memory stay.", ref: ref(), class: device, derived: derived, status: &machinev1alpha1.NodeTemplateStatus{
			Capacity: resources("cpu", "4", "memory", "7577Mi", "nvidia.com/gpu", "1"), NodeInfo: machinev1alpha1.NodeTemplateInfo{Architecture: "arm64", OperatingSystem: "linux"},
		}, reason: "NodeCapacityKnown"},
		"OfAClassThatTheBindingCannotRead": {why: "A user must see what to mend.", ref: ref(), class: without, notDerived: "no such key: cpus", status: &machinev1alpha1.NodeTemplateStatus{}, reason: "NodeCapacityUnknown",
			message: `MachineClass "small" has no cpu and memory in spec.nodeCapacity.capacity, and it cannot be derived from spec.forProvider: no such key: cpus: the cluster-autoscaler cannot scale up from zero`},
		"OfAClassThatIsGone":   {why: "What was known stays.", ref: ref(), there: there("web", known), status: &known, reason: "NodeCapacityUnknown", message: "the class of the template cannot be used"},
		"OfAClassThatNeverWas": {why: "The template exists already.", ref: ref(), status: &machinev1alpha1.NodeTemplateStatus{}, reason: "NodeCapacityUnknown", message: "the class of the template cannot be used"},
		"OfAnotherName": {why: "The autoscaler would read that of another.", class: class(known.Capacity), reason: "InfrastructureRefInvalid",
			ref:     ref(func(r *machinev1alpha1.InfrastructureReference) { r.Name = "other" }),
			message: `spec.template.spec.infrastructureRef.name: is "other": must be "web", the name of the MachineDeployment`},
		"OfASetOfTheSameName": {why: "Two cannot own it, and Machines must not wait for that.", ref: ref(), class: class(known.Capacity), there: there("set", known), reason: "InfrastructureRefInvalid",
			message: `spec.template.spec.infrastructureRef.name: the NodeTemplate "web" is of MachineSet "web": rename the MachineDeployment`},
		"OfNoOwner": {why: "A user wrote it.", ref: ref(), class: class(known.Capacity), there: &machinev1alpha1.NodeTemplate{}, reason: "InfrastructureRefInvalid",
			message: `spec.template.spec.infrastructureRef.name: the NodeTemplate "web" is of no owner: rename the MachineDeployment`},
	} {
		t.Run(name, func(t *testing.T) {
			owner := &metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid"}
			d := Plan(Observed{Owner: owner, Kind: "MachineDeployment", Ref: tc.ref, Class: tc.class, There: tc.there, Derived: tc.derived, NotDerived: tc.notDerived})
			var status *machinev1alpha1.NodeTemplateStatus
			if d.NodeTemplate != nil {
				status = &d.NodeTemplate.Status
				if d.NodeTemplate.Name != "web" || d.NodeTemplate.Namespace != "ns" || d.NodeTemplate.Kind != "NodeTemplate" {
					t.Errorf("NodeTemplate %+v", d.NodeTemplate)
				}
			}
			if diff := cmp.Diff(tc.status, status); diff != "" {
				t.Errorf("%s -want +got\n%s", tc.why, diff)
			}
			var want *plan.Condition
			if tc.reason != "" {
				want = &plan.Condition{Type: "ScalesFromZero", Status: "False", Reason: tc.reason, Message: tc.message}
				if tc.reason == "NodeCapacityKnown" {
					want.Status = "True"
				}
			}
			if diff := cmp.Diff(want, d.Condition); diff != "" {
				t.Errorf("%s -want +got\n%s", tc.why, diff)
			}
		})
	}
}

func TestLacks(t *testing.T) {
	without := class(nil)
	without.Spec.NodeCapacity = nil
	for name, tc := range map[string]struct {
		class *machinev1alpha1.MachineClass
		want  bool
	}{
		"AClassWithoutCapacity":  {without, true},
		"AClassWithADeviceAlone": {class(resources("nvidia.com/gpu", "1")), true},
		"AClassWithoutMemory":    {class(resources("cpu", "2")), true},
		"AClassWithBoth":         {class(resources("cpu", "2", "memory", "4Gi")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Lacks(tc.class); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// TestANodeTemplateHasTheSmallestInstanceType: the autoscaler must not expect more than the Node of any instance type has.
func TestANodeTemplateHasTheSmallestInstanceType(t *testing.T) {
	listed := class(resources("example.org/license", "1"))
	listed.Spec.InstanceTypes = []machinev1alpha1.InstanceType{{Name: "a"}, {Name: "b"}}
	a := vm.NodeOfInstanceType{Name: "a", Capacity: &machinev1alpha1.NodeCapacity{Capacity: resources("cpu", "8", "memory", "8Gi")}}
	b := vm.NodeOfInstanceType{Name: "b", Capacity: &machinev1alpha1.NodeCapacity{Capacity: resources("cpu", "4", "memory", "16Gi", "nvidia.com/gpu", "1")}}
	o := Observed{Owner: &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid"}}, Kind: "MachineDeployment", Ref: ref(), Class: listed, InstanceTypes: []vm.NodeOfInstanceType{a, b}}
	d := Plan(o)
	if want := resources("cpu", "4", "memory", "8Gi", "example.org/license", "1"); d.Condition.Status != "True" || !cmp.Equal(d.NodeTemplate.Status.Capacity, want) {
		t.Errorf("condition %+v\n-want +got:\n%s", d.Condition, cmp.Diff(want, d.NodeTemplate.Status.Capacity))
	}
	o.InstanceTypes[1].Capacity = nil
	const unknown = `MachineClass "small" has no cpu and memory in spec.nodeCapacity.capacity or in spec.instanceTypes "b": the cluster-autoscaler cannot scale up from zero`
	if c := Plan(o).Condition; c.Status != "False" || c.Reason != machinev1alpha1.ReasonNodeCapacityUnknown || c.Message != unknown {
		t.Errorf("condition %+v", c)
	}
}
