package nativetest

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// Kills kills the provider at random times while 50 VMs are created, and as often while they are deleted. There must be no second
// VM of a name, none may be left, and none may fail or count as lost because of it.
func Kills[T native.Resource, C any](t *testing.T, c Cloud[T, C], kills int, seed int64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, random := newWorld(t, c), rand.New(rand.NewSource(seed))
		var vms []T
		for i := range fifty {
			name := fmt.Sprintf("vm-%02d", i)
			vms = append(vms, w.add(w.newVM(name, attributes("m-"+name))))
		}
		w.killAtRandom(vms, kills/2, random)
		w.until(enough, "50 VMs run", func() bool {
			return !slices.ContainsFunc(vms, func(vm T) bool {
				return !w.get(vm) || vm.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue
			})
		})
		for _, vm := range vms {
			w.wantVMs(vm.GetName(), 1)
		}
		for _, vm := range vms {
			w.delete(vm)
		}
		w.killAtRandom(vms, kills-kills/2, random)
		w.until(enough, "50 VMs are gone", func() bool { return !slices.ContainsFunc(vms, w.get) })
		time.Sleep(10 * time.Minute) // Some clouds show a VM some time after they accepted its creation.
		w.wantNothing()
	})
}

// killAtRandom kills and restarts the provider at random times. It fails if there is a second VM of a name, or if one failed.
func (w *world[T, C]) killAtRandom(vms []T, kills int, random *rand.Rand) {
	w.Helper()
	for range kills {
		time.Sleep(time.Duration(random.Int63n(int64(5 * time.Second))))
		w.kill()
		time.Sleep(time.Duration(random.Int63n(int64(3 * time.Second))))
		w.restart()
		for _, vm := range vms {
			w.awake(vm)
		}
		seen := map[string]bool{}
		for _, vm := range w.VMs() {
			if seen[vm.Name] {
				w.Fatalf("there are two VMs %s", vm.Name)
			}
			seen[vm.Name] = true
		}
		for _, vm := range vms {
			if w.get(vm) && (vm.Observation().State == string(native.StateFailed) || vm.GetCondition(xpv2.TypeReady).Reason == machinev1alpha1.ReasonMissing) {
				w.Fatalf("%s: state %s, %+v", vm.GetName(), vm.Observation().State, vm.GetCondition(xpv2.TypeReady))
			}
		}
	}
}
