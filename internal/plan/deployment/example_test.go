package deployment_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

// A user changed the version of a deployment of four Machines. The planner composes a set for the new
// version, and decides the first step of the rollout: the surge allows one Machine more, and one of
// the old ones may be unavailable.
//
// The plan only records the new numbers, in the status of the deployment. A later call reads them
// there and carries them out. So in this call the sets are composed with their previous numbers.
func ExamplePlan() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	versioned := func(version string) machinev1alpha1.MachineTemplate {
		t := machinev1alpha1.MachineTemplate{}
		t.Spec.ClassRef.Name, t.Spec.Version = "small", version
		return t
	}

	workers := &machinev1alpha1.MachineDeployment{}
	workers.Name, workers.UID = "workers", "uid-of-workers"
	workers.Spec.Replicas = 4
	workers.Spec.Template = versioned("v1.36.0")
	workers.Spec.Strategy.RollingUpdate = machinev1alpha1.RollingUpdateBounds{
		MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(1)),
	}

	old := &machinev1alpha1.MachineSet{}
	old.Name = "workers-old"
	old.Annotations = map[string]string{machinev1alpha1.AnnotationRevision: "1"}
	old.Spec.Replicas = 4
	old.Spec.Template = versioned("v1.35.4")
	old.Status.Replicas, old.Status.ReadyReplicas, old.Status.AvailableReplicas = 4, 4, 4

	decision := deployment.Plan(now, deployment.Observed{
		Deployment: workers,
		Sets:       []deployment.Set{{MachineSet: old, Observed: true}},
		ClassFound: true,
	})

	next := map[string]int32{}
	for _, recorded := range decision.Status.MachineSets {
		next[recorded.Name] = recorded.Replicas
	}
	for _, set := range decision.Sets {
		fmt.Printf("set of %s: %d replicas, next %d\n", set.Spec.Template.Spec.Version, set.Spec.Replicas, next[set.Name])
	}
	// Output:
	// set of v1.35.4: 4 replicas, next 3
	// set of v1.36.0: 0 replicas, next 1
}
