package vsphere

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
)

// wantDataDisks checks the disks of the case DataDisks.
func wantDataDisks(t *testing.T, w *world, vm mo.VirtualMachine) {
	t.Helper()
	got := map[string]string{}
	units := map[string]bool{}
	for _, d := range disksOf(vm.Config.Hardware.Device) {
		b := d.Backing.(*types.VirtualDiskFlatVer2BackingInfo)
		got[fmt.Sprint(d.CapacityInBytes>>30)] = fmt.Sprintf("%.10s thin %t zeroed %t", b.FileName, ptr.Deref(b.ThinProvisioned, false), ptr.Deref(b.EagerlyScrub, false))
		units[fmt.Sprintf("%d:%d", d.ControllerKey, *d.UnitNumber)] = true
		if !slices.Contains(w.get().Status.AtProvider.Disks, b.Uuid) {
			t.Errorf("disk %s is not recorded in the status", b.FileName)
		}
	}
	first := got["40"]
	delete(got, "40")
	if d := cmp.Diff(map[string]string{
		"20": "[LocalDS_0 thin true zeroed false",
		"30": "[LocalDS_1 thin false zeroed true",
		"50": "[LocalDS_0 thin false zeroed false",
	}, got); d != "" || first == "" {
		t.Errorf("first disk %q; data disks (-want +got):\n%s", first, d)
	}
	if len(units) != 4 {
		t.Errorf("units %v, want 4", units)
	}
}

// scsi returns a SCSI controller with devices at these units.
func scsi(key, bus int32, units ...int32) object.VirtualDeviceList {
	c := &types.VirtualLsiLogicController{}
	c.Key, c.BusNumber, c.ScsiCtlrUnitNumber = key, bus, scsiControllerUnit
	out := object.VirtualDeviceList{c}
	for _, u := range units {
		d := &types.VirtualDisk{}
		d.ControllerKey, d.UnitNumber = key, &u
		out = append(out, d)
	}
	return out
}

func allUnits() (out []int32) {
	for u := range int32(scsiUnits) {
		if u != scsiControllerUnit {
			out = append(out, u)
		}
	}
	return out
}

func TestDataDisksHaveFreeUnits(t *testing.T) {
	cases := map[string]struct {
		devices object.VirtualDeviceList
		disks   int
		want    string // controllers and units, or the error
	}{
		"AfterTheDisksOfTheTemplate":    {scsi(1000, 0, 0, 2), 3, "1000:1 1000:3 1000:4"},
		"WithoutTheUnitOfTheController": {scsi(1000, 0, 0, 1, 2, 3, 4, 5), 2, "1000:6 1000:8"},
		"AtTheSecondController":         {append(scsi(1000, 0, allUnits()...), scsi(1001, 1, 0)...), 1, "1001:1"},
		"AtANewControllerIfOneIsFull":   {scsi(1000, 0, allUnits()[1:]...), 2, "1000:0 new bus 1 -301:0"},
		"AtANewControllerOfAFreeBus":    {append(scsi(1000, 0, allUnits()...), scsi(1001, 1, allUnits()...)...), 1, "new bus 2 -302:0"},
		"AtANewControllerIfThereIsNone": {nil, 1, "new bus 0 -300:0"},
		"AtTheControllerOfTheLowestBus": {append(scsi(1001, 1, 0), scsi(1000, 0, 0)...), 1, "1000:1"},
		"OrThereIsNoRoom":               {slices.Concat(scsi(1, 0, allUnits()...), scsi(2, 1, allUnits()...), scsi(3, 2, allUnits()...), scsi(4, 3, allUnits()...)), 1, "InvalidRequest: forProvider.dataDisks: invalid number 1: the 4 SCSI controllers of the VM have no free unit for disk 1"},
		"TheMaximumNeedsTwoControllers": {scsi(1000, 0, 0), 29, "1000:15 new bus 1 -301:0"},
		"NoDataDisksChangeNothing":      {scsi(1000, 0, 0), 0, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := v1alpha1.VirtualMachineParameters{DataDisks: make([]v1alpha1.DataDisk, tc.disks)}
			changes, err := addDataDisks(p, places{devices: tc.devices, diskDatastores: make([]*object.Datastore, tc.disks)})
			var got []string
			keys := map[int32]bool{}
			for _, c := range changes {
				switch d := c.GetVirtualDeviceConfigSpec().Device.(type) {
				case *types.ParaVirtualSCSIController:
					got = append(got, fmt.Sprintf("new bus %d", d.BusNumber))
					keys[d.Key] = true
				case *types.VirtualDisk:
					got = append(got, fmt.Sprintf("%d:%d", d.ControllerKey, *d.UnitNumber))
					keys[d.Key] = true
				}
			}
			if err != nil {
				got = append(got, err.Error())
			}
			s := strings.Join(got, " ")
			if tc.disks == 29 {
				if !strings.Contains(s, tc.want) || len(got) != 30 {
					t.Errorf("%d changes, %s, want 30 with %s", len(got), s, tc.want)
				}
			} else if s != tc.want {
				t.Errorf("%s, want %s", s, tc.want)
			}
			if err == nil && len(keys) != len(changes) {
				t.Errorf("keys %v of %d devices", keys, len(changes))
			}
		})
	}
}

func twoDataDisks(p *v1alpha1.VirtualMachineParameters) {
	p.DataDisks = []v1alpha1.DataDisk{{SizeGiB: 20}, {SizeGiB: 30}}
}

func TestDataDisksAreDeletedWithTheVMAndVolumesAreNot(t *testing.T) {
	w := newWorld(t)
	w.create(twoDataDisks)
	w.untilReady()
	var own []string
	for _, d := range disksOf(w.clone().Config.Hardware.Device) {
		own = append(own, backingOf(d).file)
	}
	w.attach("[LocalDS_0] volumes/pv.vmdk", nothing)
	w.change(pin)
	w.restart()
	w.delete()
	w.untilGone()
	if len(own) != 3 {
		t.Errorf("disks %q, want 3", own)
	}
	for _, f := range own {
		if w.exists(f) {
			t.Errorf("%s is still there", f)
		}
	}
	if !w.exists("[LocalDS_0] volumes/pv.vmdk") {
		t.Error("the volume was deleted with the VM")
	}
}

// The provider restarts after each reconcile, and the response of the first clone is lost.
func TestDataDisksAreAddedOnce(t *testing.T) {
	slowClones(t, 100)
	w := newWorld(t)
	clones := w.loseFirstClone()
	w.create(twoDataDisks)
	w.patiently("ready", func(vm *v1alpha1.VirtualMachine) bool {
		w.restart()
		return vm.GetCondition("Ready").Status == "True"
	})
	if n := len(disksOf(w.clone().Config.Hardware.Device)); n != 3 || len(w.get().Status.AtProvider.Disks) != 3 {
		t.Errorf("%d disks, and %v in the status, want 3", n, w.get().Status.AtProvider.Disks)
	}
	if *clones == 0 {
		t.Error("no response was lost")
	}
}
