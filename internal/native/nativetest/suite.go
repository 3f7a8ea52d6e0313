package nativetest

import (
	"flag"
	"math/rand"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/test/fakes"
)

const (
	// fifty is the number of VMs that are created at once.
	fifty = 50
	// installation of the VMs.
	installation = "7f3a0c1e-0000-4000-8000-000000000001"
	// enough is a time in which everything succeeds that can succeed.
	enough = 30 * time.Minute
)

// histories is small, because each history takes half a second of a processor.
var histories = flag.Int64("histories", 10, "number of random histories")

func attributes(machine string) map[string]string {
	return map[string]string{
		machinev1alpha1.TagInstallation: installation,
		machinev1alpha1.TagCluster:      "team-a/production",
		machinev1alpha1.TagNamespace:    "team-a",
		machinev1alpha1.TagMachine:      machine,
		machinev1alpha1.TagMachineUID:   "5c1d3f4e-0000-4000-8000-000000000001",
	}
}

// Run runs the cases that every cloud must pass. Each case has its own cloud.
func Run[T native.Resource, C any](t *testing.T, start func(*testing.T) Cloud[T, C]) {
	t.Helper()
	cases := []struct {
		name string
		run  func(*world[T, C])
	}{
		{"AVMIsCreatedAndDeleted", isCreatedAndDeleted[T, C]},
		{"AVMWaitsForItsUserData", waitsForUserData[T, C]},
		{"AnInvalidVMIsRefusedBeforeAnythingIsCreated", isRefused[T, C]},
		{"ALostResponseCreatesNoSecondVM", lostAnswer[T, C]},
		{"AProviderThatIsKilledBetweenCreateAndRecordCreatesNoSecondVM", killedAtCreation[T, C]},
		{"AVMOfUnknownCreationIsDeletedWithItsResource", deletedWhileUnknown[T, C]},
		{"AVMIsDeletedWhileItIsCreated", deletedWhileCreated[T, C]},
		{"ALostVMIsReportedAndNotCreatedAgain", isLost[T, C]},
		{"AStoppedVMIsReportedAndNotStarted", isStopped[T, C]},
		{"ARebootIsRequestedOncePerRequest", isRebooted[T, C]},
		{"AStoppedVMIsStartedByAHardReboot", isStartedByReboot[T, C]},
		{"ARebootOutlivesThrottlingAndIsRequestedOnce", isRebootedAfterThrottling[T, C]},
		{"AnOrphanIsListedFoundAndAdopted", isAdopted[T, C]},
		{"AVMThatIsOnlyObservedAndDoesNotExistIsReported", isOnlyObserved[T, C]},
		{"WrongCredentialsLoseNoVM", wrongCredentials[T, C]},
		{"RotatedCredentialsAreUsedAtOnce", rotatedCredentials[T, C]},
		{"AThrottlingCloudGetsFewCalls", isThrottled[T, C]},
		{"AConfigurationOfAnotherPlaceLosesNoVM", anotherPlace[T, C]},
		{"FiftyVMsAtOnce", fiftyAtOnce[T, C]},
		{"RandomHistories", nil},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if tc.run != nil {
				synctest.Test(t, func(t *testing.T) { tc.run(newWorld(t, start(t))) })
				return
			}
			for seed := range *histories {
				synctest.Test(t, func(t *testing.T) { history(newWorld(t, start(t)), seed) })
			}
		})
	}
}

func isCreatedAndDeleted[T native.Resource, C any](w *world[T, C]) {
	vm := w.add(w.newVM("vm-1", attributes("m-1")))
	w.untilReady(enough, vm)
	w.wantVMs("vm-1", 1)
	if got := w.existing("vm-1"); len(got) == 1 && got[0].UserData != UserData {
		w.Errorf("the user data is %q, want %q", got[0].UserData, UserData)
	}
	at := vm.Observation()
	if at.Place == "" || at.State != string(native.StateRunning) {
		w.Errorf("place %q, state %q", at.Place, at.State)
	}
	providerID := at.ProviderID
	w.restart()
	w.awake(vm)
	time.Sleep(2 * poll)
	if w.untilReady(enough, vm); vm.Observation().ProviderID != providerID {
		w.Errorf("the providerID changed from %s to %s", providerID, vm.Observation().ProviderID)
	}
	w.deleteAll(vm)
}

func waitsForUserData[T native.Resource, C any](w *world[T, C]) {
	vm := w.newVM("vm-1", attributes("m-1"))
	w.UseUserData(vm, xpv2.LocalSecretKeySelector{LocalSecretReference: xpv2.LocalSecretReference{Name: "later"}, Key: "userData"})
	w.add(vm)
	w.untilCondition(enough, vm, xpv2.TypeSynced, corev1.ConditionFalse, "userDataSecretRef", `"later"`)
	w.wantVMs("vm-1", 0)
	s := &corev1.Secret{Data: map[string][]byte{"userData": []byte(UserData)}}
	s.Namespace, s.Name = Namespace, "later"
	if err := w.kube.Create(w.Context(), s); err != nil {
		w.Fatal(err)
	}
	w.untilReady(enough, vm)
}

func isRefused[T native.Resource, C any](w *world[T, C]) {
	vm := w.newVM("vm-1", attributes("m-1"))
	field := w.Invalid(vm)
	w.add(vm)
	w.untilCondition(enough, vm, xpv2.TypeSynced, corev1.ConditionFalse, "InvalidRequest: ", "forProvider."+field)
	time.Sleep(10 * time.Minute)
	w.wantNothing()
	if w.get(vm); !meta.GetExternalCreatePending(vm).IsZero() {
		w.Error("a creation is recorded that never began")
	}
	w.delete(vm)
	w.untilGone(enough, vm)
}

func lostAnswer[T native.Resource, C any](w *world[T, C]) {
	w.CutCreations(2, nil)
	vm := w.add(w.newVM("vm-1", attributes("m-1")))
	w.untilReady(enough, vm)
	w.wantVMs("vm-1", 1)
	w.deleteAll(vm)
}

func killedAtCreation[T native.Resource, C any](w *world[T, C]) {
	w.CutCreations(1, w.kill)
	vm := w.add(w.newVM("vm-1", attributes("m-1")))
	w.until(enough, "the provider is killed", w.isDead)
	time.Sleep(5 * time.Second)
	w.restart()
	w.awake(vm)
	w.untilReady(enough, vm)
	w.wantVMs("vm-1", 1)
	w.deleteAll(vm)
}

func deletedWhileUnknown[T native.Resource, C any](w *world[T, C]) {
	w.CutCreations(1, w.kill)
	vm := w.add(w.newVM("vm-1", attributes("m-1")))
	w.until(enough, "the provider is killed", w.isDead)
	w.delete(vm)
	w.restart()
	w.awake(vm)
	w.untilGone(enough, vm)
	// Some clouds show a VM some time after they accepted its creation.
	time.Sleep(10 * time.Minute)
	w.wantNothing()
}

func deletedWhileCreated[T native.Resource, C any](w *world[T, C]) {
	for i := range 12 {
		vm := w.add(w.newVM("vm-1", attributes("m-1")))
		time.Sleep(time.Duration(i*i) * 300 * time.Millisecond)
		w.deleteAll(vm)
	}
}

func isLost[T native.Resource, C any](w *world[T, C]) {
	vm := w.add(w.newVM("vm-1", attributes("m-1")))
	w.untilReady(enough, vm)
	w.Lose("vm-1")
	w.untilCondition(5*time.Minute, vm, xpv2.TypeReady, corev1.ConditionFalse, machinev1alpha1.ReasonMissing)
	time.Sleep(time.Hour)
	w.wantVMs("vm-1", 0)
	w.deleteAll(vm)
}

// needsPower skips the case at a cloud that neither reports nor changes whether a VM is powered on.
func (w *world[T, C]) needsPower() {
	w.Helper()
	if w.LacksPower {
		w.Skip("the cloud neither reports whether a VM is powered on nor reboots one")
	}
}

func isStopped[T native.Resource, C any](w *world[T, C]) {
	w.needsPower()
	vm := w.add(w.newVM("vm-1", attributes("m-1")))
	w.untilReady(enough, vm)
	w.Stop("vm-1")
	w.untilCondition(5*time.Minute, vm, xpv2.TypeReady, corev1.ConditionFalse, string(xpv2.ReasonUnavailable))
	time.Sleep(time.Hour)
	w.untilCondition(time.Minute, vm, xpv2.TypeReady, corev1.ConditionFalse, string(xpv2.ReasonUnavailable))
	w.deleteAll(vm)
}

// requestReboot requests a reboot as the Machine of a VM does.
func (w *world[T, C]) requestReboot(vm T, mode machinev1alpha1.RebootMode, id string) string {
	request := machinev1alpha1.RebootRequest(mode, id)
	w.change(vm, func() {
		vm.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve, xpv2.ManagementActionDelete})
		meta.AddAnnotations(vm, map[string]string{machinev1alpha1.AnnotationReboot: request})
	})
	w.awake(vm)
	return request
}

// rebootOf returns the reboot of a running VM that the cloud carries out in a mode.
func (w *world[T, C]) rebootOf(mode machinev1alpha1.RebootMode) string {
	if w.OneReboot {
		mode = machinev1alpha1.RebootSoft
	}
	return string(mode)
}

// wantReboots fails unless these reboots of a VM happened, and no others.
func (w *world[T, C]) wantReboots(name string, want ...string) {
	w.Helper()
	if got := w.Reboots(name); !slices.Equal(got, want) {
		w.Fatalf("reboots of %s: %q, want %q", name, got, want)
	}
}

func isRebooted[T native.Resource, C any](w *world[T, C]) {
	w.needsPower()
	vm := w.add(w.newVM("vm-1", attributes("m-1")))
	w.untilReady(enough, vm)
	providerID := vm.Observation().ProviderID
	var want []string
	for _, id := range []string{"one", "two"} {
		for _, mode := range []machinev1alpha1.RebootMode{machinev1alpha1.RebootSoft, machinev1alpha1.RebootHard} {
			status := corev1.ConditionTrue
			if mode == machinev1alpha1.RebootSoft && w.LacksSoftReboot {
				status = corev1.ConditionFalse
			} else {
				want = append(want, w.rebootOf(mode))
			}
			w.untilCondition(enough, vm, machinev1alpha1.ConditionRebooted, status, w.requestReboot(vm, mode, id)+": ")
			w.restart()
			w.awake(vm)
			time.Sleep(2 * poll)
			w.wantReboots("vm-1", want...)
		}
	}
	w.untilReady(enough, vm)
	if got := vm.Observation().ProviderID; got != providerID {
		w.Errorf("the providerID changed from %s to %s", providerID, got)
	}
	w.wantVMs("vm-1", 1)
	w.deleteAll(vm)
}

func isStartedByReboot[T native.Resource, C any](w *world[T, C]) {
	w.needsPower()
	vm := w.add(w.newVM("vm-1", attributes("m-1")))
	w.untilReady(enough, vm)
	w.Stop("vm-1")
	w.untilCondition(5*time.Minute, vm, xpv2.TypeReady, corev1.ConditionFalse, string(xpv2.ReasonUnavailable))
	w.untilCondition(enough, vm, machinev1alpha1.ConditionRebooted, corev1.ConditionTrue, w.requestReboot(vm, machinev1alpha1.RebootHard, "one")+": ")
	w.untilReady(enough, vm)
	w.wantReboots("vm-1", "Hard")
	w.deleteAll(vm)
}

func isRebootedAfterThrottling[T native.Resource, C any](w *world[T, C]) {
	w.needsPower()
	vm := w.add(w.newVM("vm-1", attributes("m-1")))
	w.untilReady(enough, vm)
	w.Throttle(time.Minute)
	request := w.requestReboot(vm, machinev1alpha1.RebootHard, "one")
	w.untilCondition(enough, vm, machinev1alpha1.ConditionRebooted, corev1.ConditionTrue, request+": ")
	time.Sleep(10 * poll)
	w.wantReboots("vm-1", w.rebootOf(machinev1alpha1.RebootHard))
	w.deleteAll(vm)
}

func isAdopted[T native.Resource, C any](w *world[T, C]) {
	vm := w.add(w.newVM("vm-1", attributes("m-1")))
	w.untilReady(enough, vm)
	name, providerID := meta.GetExternalName(vm), vm.Observation().ProviderID
	time.Sleep(time.Minute) // Some clouds list a VM late.
	// The VM becomes an orphan: a user removes the finalizer while the provider is down.
	w.kill()
	w.delete(vm)
	w.change(vm, func() { vm.SetFinalizers(nil) })
	w.untilGone(enough, vm)
	w.restart()
	w.wantVMs("vm-1", 1)

	l := w.lister(w.newVM("any", nil))
	vms, complete, err := l.List(w.Context(), installation)
	if err != nil || !complete || len(vms) != 1 {
		w.Fatalf("listed %+v, complete %t, %v", vms, complete, err)
	}
	if vms[0].ExternalName != name || vms[0].ProviderID != providerID {
		w.Errorf("listed %+v, want external name %s and providerID %s", vms[0], name, providerID)
	}
	for k, v := range attributes("m-1") {
		if w.TagValue != nil {
			v = w.TagValue(v)
		}
		if vms[0].Tags[k] != v {
			w.Errorf("tag %s is %q, want %q", k, vms[0].Tags[k], v)
		}
	}
	if other, complete, err := l.List(w.Context(), "another"); err != nil || !complete || len(other) > 0 {
		w.Errorf("of another installation are listed %+v, complete %t, %v", other, complete, err)
	}
	found, complete, err := l.(inventory.Finder).Find(w.Context(), []string{name, "0b0e7d2c-6a52-4a0b-9b53-ffffffffffff"})
	if err != nil || !complete || len(found) != 1 || found[0].ExternalName != name {
		w.Errorf("found %+v, complete %t, %v", found, complete, err)
	}

	orphan := w.newVM("orphan", nil)
	meta.SetExternalName(orphan, name)
	orphan.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve})
	w.add(orphan)
	w.untilReady(enough, orphan)
	w.change(orphan, func() {
		orphan.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve, xpv2.ManagementActionDelete})
	})
	w.delete(orphan)
	w.untilGone(enough, orphan)
	w.wantNothing()
}

func isOnlyObserved[T native.Resource, C any](w *world[T, C]) {
	vm := w.newVM("vm-1", nil)
	w.Invalid(vm) // The spec is not validated.
	meta.SetExternalName(vm, "0b0e7d2c-6a52-4a0b-9b53-ffffffffffff")
	vm.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve})
	w.add(vm)
	w.untilCondition(enough, vm, xpv2.TypeSynced, corev1.ConditionFalse, "external resource does not exist")
	w.wantNothing()
}

func wrongCredentials[T native.Resource, C any](w *world[T, C]) {
	before := w.add(w.newVM("vm-1", attributes("m-1")))
	w.untilReady(enough, before)
	w.Rotate() // The Secret keeps the old credentials.
	vm := w.add(w.newVM("vm-2", attributes("m-2")))
	w.untilCondition(enough, vm, xpv2.TypeSynced, corev1.ConditionFalse, `ClusterProviderConfig "default": PermissionDenied: `)
	calls := w.Calls()
	time.Sleep(10 * time.Minute)
	if _, n := w.callsSince(calls); n > 15 {
		w.Errorf("%d calls in 10 minutes with credentials that the cloud refuses: a cloud may lock the account", n)
	}
	if w.get(before); before.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue || before.GetCondition(xpv2.TypeSynced).Status != corev1.ConditionFalse {
		w.Errorf("the VM that existed before has %+v, want Ready and not Synced", before.GetCondition(xpv2.TypeReady))
	}
	w.wantVMs("vm-1", 1)
	w.wantVMs("vm-2", 0)
	w.setSecret(nil)
	w.untilReady(enough, vm)
	w.untilCondition(enough, before, xpv2.TypeSynced, corev1.ConditionTrue)
}

func rotatedCredentials[T native.Resource, C any](w *world[T, C]) {
	vm := w.add(w.newVM("vm-1", attributes("m-1")))
	time.Sleep(3 * time.Second) // During its creation.
	w.Rotate()
	w.setSecret(nil)
	w.untilReady(enough, vm)
	w.wantVMs("vm-1", 1)
	w.Rotate()
	w.setSecret(nil)
	w.process.Idle()
	w.deleteAll(vm)
}

func isThrottled[T native.Resource, C any](w *world[T, C]) {
	vm := w.add(w.newVM("vm-1", attributes("m-1")))
	w.Throttle(5 * time.Minute)
	calls := w.Calls()
	time.Sleep(4 * time.Minute)
	if _, n := w.callsSince(calls); n > 4*60*2 {
		w.Errorf("%d calls in 4 minutes to a cloud that refuses all", n)
	}
	w.untilReady(enough, vm)
	w.Throttle(5 * time.Minute)
	w.deleteAll(vm)
}

func anotherPlace[T native.Resource, C any](w *world[T, C]) {
	vm := w.add(w.newVM("vm-1", attributes("m-1")))
	w.untilReady(enough, vm)
	w.get(vm)
	vm.Observation().Place = "another place"
	if err := w.kube.Status().Update(w.Context(), vm); err != nil {
		w.Fatal(err)
	}
	w.Lose("vm-1")
	w.awake(vm)
	w.untilCondition(enough, vm, xpv2.TypeSynced, corev1.ConditionFalse, "another place", "nothing can be concluded")
	time.Sleep(time.Hour)
	if w.get(vm); vm.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue {
		w.Errorf("a VM of another place has %+v", vm.GetCondition(xpv2.TypeReady))
	}
	w.delete(vm)
	time.Sleep(time.Hour)
	if !w.get(vm) {
		w.Error("a VM of another place counts as deleted")
	}
}

func fiftyAtOnce[T native.Resource, C any](w *world[T, C]) {
	var vms []T
	before := w.Calls()
	for i := range fifty {
		name := "vm-" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		vms = append(vms, w.add(w.newVM(name, attributes("m-"+name))))
	}
	took := w.until(w.CreationTakes, "50 VMs run", func() bool {
		return !slices.ContainsFunc(vms, func(vm T) bool {
			return !w.get(vm) || vm.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue
		})
	})
	calls, n := w.callsSince(before)
	w.Logf("created %d VMs in %s with %d calls, %.1f each:\n%s", fifty, took.Round(100*time.Millisecond), n, float64(n)/fifty, fakes.Table(calls))
	if n > w.MostCalls*fifty {
		w.Errorf("%d calls, want at most %d for each VM", n, w.MostCalls)
	}
	if got := len(w.VMs()); got != fifty {
		w.Errorf("%d VMs exist, want %d", got, fifty)
	}

	time.Sleep(15 * time.Minute) // Their addresses are observed.
	before = w.Calls()
	time.Sleep(10 * poll)
	calls, n = w.callsSince(before)
	w.Logf("observed %d VMs at rest with %d calls a minute:\n%s", fifty, n/10, fakes.Table(calls))
	if n > 3*10*fifty {
		w.Errorf("%d calls in 10 minutes at rest, want at most 3 for each VM and poll", n)
	}

	before = w.Calls()
	for _, vm := range vms {
		w.delete(vm)
	}
	took = w.until(w.CreationTakes, "50 VMs are gone", func() bool { return !slices.ContainsFunc(vms, w.get) })
	calls, n = w.callsSince(before)
	w.Logf("deleted %d VMs in %s with %d calls, %.1f each:\n%s", fifty, took.Round(100*time.Millisecond), n, float64(n)/fifty, fakes.Table(calls))
	if n > w.MostDeletionCalls*fifty {
		w.Errorf("%d calls, want at most %d for each VM", n, w.MostDeletionCalls)
	}
	w.wantNothing()
}

// history plays lost responses, kills and deletions at random times.
func history[T native.Resource, C any](w *world[T, C], seed int64) {
	random := rand.New(rand.NewSource(seed))
	w.CutAny(0.15, random)
	vms := []T{w.add(w.newVM("vm-1", attributes("m-1"))), w.add(w.newVM("vm-2", attributes("m-2")))}
	for range 6 {
		time.Sleep(time.Duration(random.Int63n(int64(20 * time.Second))))
		if random.Intn(2) == 0 {
			w.kill()
			time.Sleep(time.Duration(random.Int63n(int64(10 * time.Second))))
			w.restart()
			for _, vm := range vms {
				w.awake(vm)
			}
		}
		for _, vm := range vms {
			if n := len(w.existing(vm.GetName())); n > 1 {
				w.Fatalf("seed %d: %d VMs %s", seed, n, vm.GetName())
			}
		}
	}
	if random.Intn(2) == 0 {
		w.CutAny(0, random)
		for _, vm := range vms {
			w.untilReady(enough, vm)
			w.wantVMs(vm.GetName(), 1)
		}
		w.CutAny(0.15, random)
	}
	for _, vm := range vms {
		w.delete(vm)
	}
	time.Sleep(time.Minute)
	w.CutAny(0, random)
	for _, vm := range vms {
		w.untilGone(enough, vm)
	}
	time.Sleep(10 * time.Minute)
	if vms, left := w.VMs(), w.Leftovers(); len(vms)+len(left) > 0 {
		w.Errorf("seed %d: VMs %v and leftovers %v exist", seed, vms, left)
	}
}

// Until creates a VM, waits until a condition is met, and then calls check.
func Until[T native.Resource, C any](t *testing.T, c Cloud[T, C], vm T, met func(T) bool, check func(T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, c)
		w.complete(vm)
		w.add(vm)
		w.until(enough, vm.GetName()+" meets the condition", func() bool { return w.get(vm) && met(vm) })
		if check != nil {
			check(vm)
		}
	})
}
