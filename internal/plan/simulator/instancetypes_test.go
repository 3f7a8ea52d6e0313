package simulator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// TestInstanceTypesAreTriedInTurn lets a cloud run out of room for some instance types and get room again, refuse VMs at once or
// after it accepted them, while views of VM resources lag, and the controller of Machines and the provider of VMs are killed
// between their writes. No Machine ever may have two VMs. An instance type that is refused must be followed by the next one
// within a minute, and the Machine reports the instance type that its VM has. In the end each Machine runs, or its VM is of
// unknown result, as after a killed provider.
func TestInstanceTypesAreTriedInTurn(t *testing.T) {
	checkSome(t, "given another instance type", triesInstanceTypes)
}

// triesInstanceTypes returns the number of refusals that another instance type followed.
func triesInstanceTypes(t *rapid.T) int {
	names := []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(t, "instance types")]
	s := spec(t, machinev1alpha1.RollingUpdate)
	s.Replicas = rapid.Int32Range(1, 2).Draw(t, "replicas")
	s.MinReadySeconds = 0
	w := NewWorld(s, Cloud{ID: 5 * time.Second, Boot: 20 * time.Second, Drain: time.Second})
	types := &InstanceTypes{Names: names, Refused: map[string]string{}}
	w.InstanceTypes = types
	code := func() string {
		return rapid.SampledFrom([]string{"", "", "CapacityExhausted", "QuotaExceeded"}).Draw(t, "room")
	}
	toggle := func() {
		for _, name := range names {
			types.Refused[name] = code()
		}
	}
	toggle()
	chance := func(label string, oneIn int) func() bool {
		if !rapid.Bool().Draw(t, label) {
			return nil
		}
		return func() bool { return rapid.IntRange(1, oneIn).Draw(t, label) == 1 }
	}
	types.Accepts = chance("a VM fails after it was accepted", 3)
	w.Kill = chance("the controller is killed", 15)
	types.KillProvider = chance("the provider is killed", 30)
	if rapid.Bool().Draw(t, "views lag") {
		types.Lag = func() int { return rapid.IntRange(0, 3).Draw(t, "lag") }
	}
	// refused has the time of a refusal that no request followed yet.
	refused, followed := map[string]time.Time{}, 0
	types.OnRefusal = func(machine, _ string) {
		if _, waits := refused[machine]; !waits {
			refused[machine] = w.Now
		}
	}
	types.OnRequest = func(machine, instanceType string) {
		if vms := w.VMs(machine); len(vms) > 0 {
			t.Fatalf("%s: a VM of the instance type %s is requested, and the cloud has %v", machine, instanceType, vms)
		}
		if _, was := refused[machine]; was {
			delete(refused, machine)
			followed++
		}
	}
	w.OnTick = func() {
		for _, m := range w.Machines() {
			vms := w.VMs(m.Name)
			if len(vms) > 1 {
				t.Fatalf("%s has the VMs %v", m.Name, vms)
			}
			st := m.Status.InstanceType
			if m.DeletionTimestamp != nil || st == nil || m.Status.Phase == machinev1alpha1.MachineFailed {
				delete(refused, m.Name)
				continue
			}
			isExhausted := len(st.Refused) == len(names) && !slices.ContainsFunc(st.Refused, func(r machinev1alpha1.RefusedInstanceType) bool { return r.Round != st.Round })
			if since, waits := refused[m.Name]; waits && isExhausted {
				delete(refused, m.Name) // A pause follows.
			} else if waits && w.Now.Sub(since) > time.Minute {
				t.Fatalf("%s: the instance type was refused %s ago, and no other is tried: %+v", m.Name, w.Now.Sub(since), st)
			}
			if m.Status.Phase == machinev1alpha1.MachineRunning && len(vms) == 1 && vms[0] != st.InstanceType {
				t.Fatalf("%s reports the instance type %s, and has a VM of %s", m.Name, st.InstanceType, vms[0])
			}
			if op := m.Status.LastOperation; op != nil && op.ErrorCode != "" && op.State == machinev1alpha1.OperationProcessing && len(st.Refused) < len(names) {
				t.Fatalf("%s reports %s, and only %d of %d instance types were refused: %+v", m.Name, op.ErrorCode, len(st.Refused), len(names), op)
			}
		}
	}
	for range rapid.IntRange(0, 4).Draw(t, "changes of the room") {
		w.Run(time.Duration(rapid.IntRange(1, 300).Draw(t, "seconds")) * time.Second)
		toggle()
	}
	types.Refused = map[string]string{names[rapid.IntRange(0, len(names)-1).Draw(t, "no room")]: "CapacityExhausted"}
	if len(names) == 1 {
		types.Refused = map[string]string{}
	}
	if types.Accepts = nil; types.KillProvider != nil {
		types.KillProvider = nil
	}
	if !w.RunUntil(2*time.Hour, w.Settled) {
		var left []string
		for _, m := range w.Machines() {
			left = append(left, fmt.Sprintf("%s %s %s %+v", m.Name, m.Status.Phase, m.Status.FailureReason, m.Status.InstanceType))
		}
		t.Fatalf("not settled after two hours: %v", left)
	}
	return followed
}

// TestTheCapacityTimeoutCountsFromTheRefusalOfAll gives the Machine of a node group three instance types, of which the cloud
// has none. It fails after its capacityTimeout, which begins when the last one is refused, and reports all of them.
func TestTheCapacityTimeoutCountsFromTheRefusalOfAll(t *testing.T) {
	for _, tc := range []struct {
		timeout time.Duration
		rounds  int32
	}{{30 * time.Second, 1}, {5 * time.Minute, 3}} {
		t.Run(tc.timeout.String(), func(t *testing.T) {
			s := machinev1alpha1.MachineDeploymentSpec{Replicas: 1, ProgressDeadlineSeconds: 1800, Selector: machinev1alpha1.Selector{MatchLabels: map[string]machinev1alpha1.LabelValue{"pool": "a"}}}
			s.Strategy.Type = machinev1alpha1.RollingUpdate
			s.Template.Metadata.Labels = s.Selector.MatchLabels
			s.Template.Spec = machinev1alpha1.MachineSpec{ClassRef: machinev1alpha1.ClassReference{Name: "small"}, Version: "v1", CapacityTimeout: &metav1.Duration{Duration: tc.timeout}}
			w := NewWorld(s, Cloud{ID: time.Second, Boot: time.Second})
			none := "CapacityExhausted"
			w.InstanceTypes = &InstanceTypes{Names: []string{"a", "b", "c"}, Refused: map[string]string{"a": none, "b": none, "c": none}}
			var failed *machinev1alpha1.Machine
			var exhausted time.Time
			w.RunUntil(time.Hour, func() bool {
				for _, m := range w.Machines() {
					if m.Status.ExhaustedSince != nil && exhausted.IsZero() {
						exhausted = w.Now
						if n := len(m.Status.InstanceType.Refused); n != 3 {
							t.Errorf("the Machine is exhausted after the refusal of %d instance types", n)
						}
					}
					if m.Status.Phase == machinev1alpha1.MachineFailed {
						failed = m
					}
				}
				return failed != nil
			})
			if failed == nil {
				t.Fatal("the Machine does not fail")
			}
			if r, code := failed.Status.FailureReason, failed.Status.LastOperation.ErrorCode; r != machinev1alpha1.FailureCapacityTimeout || code != none {
				t.Errorf("failed with %s, %s", r, code)
			}
			if after := w.Now.Sub(exhausted).Round(time.Second); after < tc.timeout-time.Second || after > tc.timeout+time.Second {
				t.Errorf("failed %s after the exhaustion", after)
			}
			if got := failed.Status.InstanceType.Round; got != tc.rounds {
				t.Errorf("failed in round %d", got)
			}
		})
	}
}
