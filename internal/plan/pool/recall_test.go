package pool

import (
	"testing"

	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

// unsee removes the MachineDeployment of a failure domain from the view.
func (w *world) unsee(domain string) {
	var seen []Deployment
	for _, d := range w.Deployments {
		if domainName(d.MachineDeployment) != domain {
			seen = append(seen, d)
		}
	}
	w.Deployments = seen
}

func TestAMachineDeploymentThatIsNotSeenYetStillCounts(t *testing.T) {
	w := resized(t, func(p *machinev1alpha1.NodePool) { p.Spec.FailureDomains = []machinev1alpha1.FailureDomain{"b", "c"} })
	w.unsee("a")
	w.step()
	if got, want := numbers(w.last), "a=0 b=3 c=2"; got != want {
		t.Errorf("numbers %s, want %s: those of the failure domain a may exist", got, want)
	}
	w.settle()
	if got, want := w.replicas(), "b=3 c=3"; got != want {
		t.Errorf("replicas %s, want %s", got, want)
	}
}

func TestAPoolThatIsNotValidComposesNothingNew(t *testing.T) {
	w := newWorld(t, pool())
	w.step()
	w.Pool.Spec.Size = ptr.To(int32(99))
	w.step()
	if n := len(w.last.Deployments); n != 0 {
		t.Errorf("%d MachineDeployments are composed without a spec", n)
	}
	if got, want := numbers(w.last), "a=2 b=1 c=1"; got != want {
		t.Errorf("numbers %s, want %s", got, want)
	}
}

func TestTheNumberOfTheAutoscalerStaysWhen(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*machinev1alpha1.NodePool)
		want string
	}{
		"ThePoolGetsASize":           {func(p *machinev1alpha1.NodePool) { p.Spec.Size, p.Spec.Autoscaling = ptr.To(int32(8)), nil }, "a=4 b=2 c=2"},
		"ThePoolLeavesFailureDomain": {func(p *machinev1alpha1.NodePool) { p.Spec.FailureDomains = []machinev1alpha1.FailureDomain{"b", "c"} }, "a=4 b=2 c=2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pool(autoscaled(0, 10)))
			w.settle()
			w.scale("a", 4)
			w.scale("b", 2)
			w.scale("c", 2)
			tc.edit(w.Pool)
			w.Pool.Generation++
			w.step()
			if got := w.replicas(); got != tc.want {
				t.Errorf("replicas %s, want %s: they were not recorded yet", got, tc.want)
			}
		})
	}
}

func TestAStatusThatWasEditedMakesNoMachines(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*machinev1alpha1.PoolDomain)
		most int32
	}{
		"ANumberAboveTheSize": {func(d *machinev1alpha1.PoolDomain) { d.DesiredReplicas = 5000 }, 5},
		"ANegativeNumber":     {func(d *machinev1alpha1.PoolDomain) { d.DesiredReplicas = -3 }, 5},
		"AnotherName":         {func(d *machinev1alpha1.PoolDomain) { d.MachineDeployment = "another" }, 5},
		"AnotherDomain":       {func(d *machinev1alpha1.PoolDomain) { d.Name, d.MachineDeployment = "z", "another" }, 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pool())
			w.settle()
			tc.edit(&w.Pool.Status.FailureDomains[0])
			for range 20 {
				w.step()
				for _, d := range w.last.Deployments {
					if d.Spec.Replicas < 0 || d.Spec.Replicas > tc.most || d.Name == "another" {
						t.Fatalf("MachineDeployment %s has %d replicas", d.Name, d.Spec.Replicas)
					}
				}
			}
			if got, want := w.replicas(), "a=2 b=1 c=1"; got != want || !w.last.Ready {
				t.Errorf("replicas %s, want %s, ready %t", got, want, w.last.Ready)
			}
		})
	}
}

func TestAMachineDeploymentThatIsDeletedByHand(t *testing.T) {
	w := resized(t, func(*machinev1alpha1.NodePool) {})
	w.settle()
	w.Deployments[0].Terminating = true
	for range 3 {
		w.last = Plan(now, w.Observed)
		w.Pool.Status.FailureDomains = w.last.Status.FailureDomains
		if got, want := numbers(w.last), "a=2 b=2 c=2"; got != want || w.last.Ready {
			t.Errorf("numbers %s, want %s, ready %t", got, want, w.last.Ready)
		}
	}
	w.unsee("a")
	w.settle()
	if got, want := w.replicas(), "a=2 b=2 c=2"; got != want {
		t.Errorf("replicas %s, want %s", got, want)
	}
	if name := names.MachineDeployment("web", "uid", "a"); w.Deployments[0].Name != name {
		t.Errorf("name %s, want %s", w.Deployments[0].Name, name)
	}
}
