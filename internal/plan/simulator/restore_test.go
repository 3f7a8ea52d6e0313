package simulator

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// surge of a pool that is restored during a rollout: the number of additional Machines that may be
// created.
const surge = 1

// restored returns a cluster with the backup of a pool during a rollout: a MachineDeployment, and
// its MachineSets and Machines without owners and statuses. Each set has the given number of
// Machines.
func restored(t interface {
	Helper()
	Fatalf(string, ...any)
}, perSet ...int) *Cluster {
	t.Helper()
	replicas := 0
	for _, n := range perSet {
		replicas += n
	}
	w := NewWorld(poolOf(1, 1, 0), Cloud{ID: time.Second, Boot: time.Second, Drain: time.Second})
	if !w.RunUntil(time.Hour, w.Settled) {
		t.Fatalf("the pool did not begin:\n%s", w)
	}
	spec := *w.Deployment().Spec.DeepCopy()
	spec.Replicas = int32(replicas)
	spec.Strategy.RollingUpdate.MaxSurge, spec.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(surge)), ptr.To(intstr.FromInt32(0))
	sample, machine := w.Sets()[0], w.Machines()[0]
	c := New(spec)
	for i, n := range perSet {
		s := sample.DeepCopy()
		s.Name, s.UID, s.OwnerReferences, s.Status = fmt.Sprintf("md-%d", i), c.uid(), nil, machinev1alpha1.MachineSetStatus{}
		s.CreationTimestamp, s.Generation = metav1.NewTime(c.Now), 1
		s.Spec.Replicas = int32(n)
		s.Annotations = map[string]string{machinev1alpha1.AnnotationRevision: fmt.Sprint(i + 1)}
		s.Spec.Selector.MatchLabels = map[string]machinev1alpha1.LabelValue{}
		for k, v := range spec.Selector.MatchLabels {
			s.Spec.Selector.MatchLabels[k] = v
		}
		hash := s.Labels[machinev1alpha1.LabelTemplateHash]
		if last := i == len(perSet)-1; !last {
			hash = fmt.Sprintf("old%d", i)
			s.Spec.Template.Spec.Version = fmt.Sprintf("v1.30.%d", i)
		}
		s.Labels[machinev1alpha1.LabelTemplateHash] = hash
		s.Spec.Selector.MatchLabels[machinev1alpha1.LabelTemplateHash] = machinev1alpha1.LabelValue(hash)
		s.Spec.Template.Metadata.Labels[machinev1alpha1.LabelTemplateHash] = machinev1alpha1.LabelValue(hash)
		c.sets.put(s, nil)
		for j := range n {
			m := machine.DeepCopy()
			m.Name, m.UID, m.OwnerReferences, m.Status = fmt.Sprintf("md-%d-%05d", i, j), c.uid(), nil, machinev1alpha1.MachineStatus{}
			m.CreationTimestamp, m.Generation = metav1.NewTime(c.Now), 1
			m.Spec.Version = s.Spec.Template.Spec.Version
			m.Labels[machinev1alpha1.LabelTemplateHash] = hash
			id := "local:///zone-a/" + m.Name
			m.Spec.ProviderID = &id
			c.machines.put(m, nil)
		}
	}
	return c
}

// takeOver lets a Machine take over its VM and its Node.
func (c *Cluster) takeOver(m *machinev1alpha1.Machine) {
	c.changeMachine(m.Name, func(m *machinev1alpha1.Machine) {
		m.Status.Phase, m.Status.ProviderID = machinev1alpha1.MachineRunning, *m.Spec.ProviderID
		m.Status.ReadySince = ptr.To(metav1.NewTime(c.Now))
		m.Status.NodeRef = &machinev1alpha1.NodeReference{Kind: "Node", Name: m.Name}
	})
}

// recoverAll lets the Machines take over their VMs in a random order, while all reconcilers have
// stale views. It reports the first wrong decision before the last takeover.
func recoverAll(c *Cluster, random *rand.Rand, steps int) string {
	c.CatchUp() // A set is restored or resumed after its Machines exist, and a deployment after its sets.
	machines := c.Machines()
	random.Shuffle(len(machines), func(i, j int) { machines[i], machines[j] = machines[j], machines[i] })
	batch := len(machines)/steps + 1
	for len(machines) > 0 {
		for range 2 {
			for v := range Views {
				c.Advance(v, random.IntN(c.Writes()+1))
			}
			c.ReconcileDeployment()
			for _, s := range c.Sets() {
				c.ReconcileSet(s.Name)
				c.ReconcileGroup(s.Name)
			}
		}
		for _, m := range c.Machines() {
			if m.DeletionTimestamp != nil {
				return fmt.Sprintf("Machine %s is deleted while %d are not taken over yet", m.Name, len(machines))
			}
		}
		if most := len(c.Sets()) - 1; c.Made > min(most, surge) {
			return fmt.Sprintf("%d Machines are created while %d are not taken over yet", c.Made, len(machines))
		}
		for _, m := range machines[:min(batch, len(machines))] {
			c.takeOver(m)
		}
		machines = machines[min(batch, len(machines)):]
		c.Now = c.Now.Add(10 * time.Second)
	}
	return ""
}

// TestARestoreOfAThousandMachinesDeletesNothing until the last Machine has its VM again.
func TestARestoreOfAThousandMachinesDeletesNothing(t *testing.T) {
	c := restored(t, 600, 400)
	if got := recoverAll(c, rand.New(rand.NewPCG(1, 2)), 20); got != "" {
		t.Fatal(got)
	}
	for range 10 {
		c.CatchUp()
		c.ReconcileDeployment()
		for _, s := range c.Sets() {
			c.ReconcileSet(s.Name)
			c.ReconcileGroup(s.Name)
		}
	}
	adopted := 0
	for _, m := range c.Machines() {
		if metav1.GetControllerOf(m) != nil {
			adopted++
		}
	}
	if adopted < 1000 {
		t.Errorf("%d of 1000 Machines have a set", adopted)
	}
	if got := c.Deployment().Status.AvailableReplicas; got < 1000 {
		t.Errorf("%d of 1000 Machines count as available", got)
	}
}

// TestARestoreOfSetsAfterTheirDeploymentKeepsTheRestoredMachines lets a MachineDeployment create a
// MachineSet of its own before the MachineSet and the Machines of the backup exist.
func TestARestoreOfSetsAfterTheirDeploymentKeepsTheRestoredMachines(t *testing.T) {
	for _, name := range []string{"md-00000", "md-zzzzz"} {
		t.Run(name, func(t *testing.T) {
			backup := restored(t, 4)
			c := New(backup.Deployment().Spec)
			for range 20 {
				c.reconcileAll()
			}
			if n := len(c.Machines()); n != 4 {
				t.Fatalf("%d Machines were made before the restore, want 4:\n%s", n, c)
			}
			set := backup.Sets()[0].DeepCopy()
			set.Name, set.UID = name, c.uid()
			c.sets.put(set, nil)
			var kept []string
			for _, m := range backup.Machines() {
				m.UID, m.OwnerReferences = c.uid(), []metav1.OwnerReference{*metav1.NewControllerRef(set, machinev1alpha1.MachineSetGroupVersionKind)}
				c.machines.put(m, nil)
				c.takeOver(m)
				kept = append(kept, m.Name)
			}
			for range 60 {
				c.reconcileAll()
			}
			for _, name := range kept {
				if e, there := c.machines.last[name]; !there || e.object.DeletionTimestamp != nil {
					t.Errorf("Machine %s of the backup is deleted:\n%s", name, c)
				}
			}
			if n := len(c.Machines()); n != 4 {
				t.Errorf("%d Machines are left, want 4:\n%s", n, c)
			}
		})
	}
}

// reconcileAll runs all reconcilers with up-to-date views, and carries out their decisions.
func (c *Cluster) reconcileAll() {
	c.CatchUp()
	c.ReconcileDeployment()
	for _, s := range c.Sets() {
		c.CatchUp()
		c.ReconcileSet(s.Name)
		c.ReconcileGroup(s.Name)
	}
	for _, m := range c.Machines() {
		if m.DeletionTimestamp != nil {
			c.Finish(m.Name)
		} else {
			c.Boot(m.Name)
		}
	}
	c.Now = c.Now.Add(10 * time.Second)
}

// TestARestoreDeletesNothingUntilAllIsTakenOver does the same to pools of all shapes.
func TestARestoreDeletesNothingUntilAllIsTakenOver(t *testing.T) { rapid.Check(t, restores) }

func restores(t *rapid.T) {
	perSet := rapid.SliceOfN(rapid.IntRange(0, 12), 0, 3).Draw(t, "per set")
	perSet = append(perSet, rapid.IntRange(1, 12).Draw(t, "of the template"))
	c := restored(t, perSet...)
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	if got := recoverAll(c, random, rapid.IntRange(1, 20).Draw(t, "steps")); got != "" {
		t.Fatalf("%s\n%v", got, c.Events)
	}
}
