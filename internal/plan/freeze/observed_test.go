package freeze

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestWhatIsRememberedIsOfThoseThatAreJudged(t *testing.T) {
	if d := Plan(since, Observed{Machines: there(10, 0)}); d.Status == nil || d.Status.Expected != 10 {
		t.Errorf("of ten Machines %+v is remembered", d.Status)
	}
	if d := Plan(since, Observed{}); d.Status != nil {
		t.Errorf("%+v is remembered of the set of a deployment", d.Status)
	}
}

func TestASetIsJudgedUnlessADeploymentControlsIt(t *testing.T) {
	counted := func(expected int32) *Machines {
		return &Machines{Expected: expected, Existing: 3, Terminating: 1, Remembered: &machinev1alpha1.SafetyStatus{}}
	}
	controlledBy := func(kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: "x", Controller: ptr.To(true)}}
	}
	for name, tc := range map[string]struct {
		replicas int32
		owners   []metav1.OwnerReference
		want     *Machines
	}{
		"a set of a deployment":                          {2, controlledBy("MachineDeployment"), nil},
		"a set of nobody may have two for each replica":  {2, nil, counted(4)},
		"a set of another controller is judged":          {2, controlledBy("Platform"), counted(4)},
		"a set of which no number is twice the replicas": {math.MaxInt32, nil, counted(math.MaxInt32 - 1)},
	} {
		t.Run(name, func(t *testing.T) {
			s := &machinev1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{OwnerReferences: tc.owners}}
			s.Spec.Replicas = tc.replicas
			s.Status.Replicas, s.Status.TerminatingReplicas, s.Status.Safety = 3, 1, &machinev1alpha1.SafetyStatus{}
			if diff := cmp.Diff(tc.want, OfSet(s).Machines); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
