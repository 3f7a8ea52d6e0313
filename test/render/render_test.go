package render

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/drover-dev/drover/test/kit"
)

var update = flag.Bool("update", false, "write what is rendered to the want.yaml of each case")

const (
	machineDeployment = "machinedeployment.yaml"
	machineSet        = "machineset.yaml"
	machineLocal      = "machine-local.yaml"
	machineVSphere    = "machine-vsphere.yaml"
	machineAzure      = "machine-upjet-azure.yaml"
	machineOpenStack  = "machine-openstack.yaml"
	machineHCloud     = "machine-hcloud.yaml"
	orphansLocal      = "orphancollector-local.yaml"
	orphansAWS        = "orphancollector-upjet-aws.yaml"
)

func TestCompositions(t *testing.T) {
	for _, tc := range []struct {
		name        string
		composition string
		// dir of the case below testdata.
		dir string
		// withoutProvider means that the API server has neither the VM's kind nor
		// the Composition of its Machines.
		withoutProvider bool
		// composed and deleted are kinds, and events are reasons, in order. They are the subject of
		// a case, so no update overwrites them.
		composed, deleted, events string
	}{
		{
			name:        "ANewDeploymentGetsAnEmptySetAndWritesDownItsScale",
			composition: machineDeployment, dir: "machinedeployment-fresh",
			composed: "MachineSet", events: "NewMachineSet ScalingMachineSet",
		},
		{
			name:        "ARolloutTakesAnOldMachineForEachNewOneThatIsAvailable",
			composition: machineDeployment, dir: "machinedeployment-rollout",
			composed: "MachineSet MachineSet", events: "ScalingMachineSet",
		},
		{
			name:        "ARolloutUnderARolloutPolicyAsksForItsTurn",
			composition: machineDeployment, dir: "machinedeployment-wave",
			composed: "RolloutTurn MachineSet MachineSet",
		},
		{
			name:        "ADeploymentOfAnUnknownClassComposesNothingAndSaysWhy",
			composition: machineDeployment, dir: "machinedeployment-unknown-class",
			events: "ClassNotFound",
		},
		{
			name:        "AnUnknownClassLeavesTheSetsOfADeploymentAsTheyAre",
			composition: machineDeployment, dir: "machinedeployment-unknown-class-rollout",
			composed: "MachineSet", events: "ClassNotFound",
		},
		{
			name:        "ADeploymentOfAClassForOtherNamespacesComposesNothingAndSaysWhy",
			composition: machineDeployment, dir: "machinedeployment-cluster-class-refused",
			events: "ClassNotAllowed",
		},
		{
			name:        "ASetOfAClassForOtherNamespacesMakesNoMachine",
			composition: machineSet, dir: "machineset-cluster-class-refused",
			composed: "MachineGroup(0+0-0)", events: "ClassNotAllowed",
		},
		{
			name:        "ANewSetStartsWithOneMachine",
			composition: machineSet, dir: "machineset-fresh",
			composed: "MachineGroup(0+1-0)", events: "CreatedMachine",
		},
		{
			name:        "ASetWhoseProviderHasNoCompositionCreatesNothingAndSaysWhy",
			composition: machineSet, dir: "machineset-without-composition", withoutProvider: true,
			composed: "MachineGroup(0+0-0)", events: "CompositionNotFound",
		},
		{
			name:        "ScaleDownDropsTheMachineThatTheAutoscalerMarked",
			composition: machineSet, dir: "machineset-scale-down",
			composed: "MachineGroup(3+0-0)", events: "DeletedMachine",
		},
		{
			name:        "ADroppedMachineIsDeleted",
			composition: machineSet, dir: "machineset-scale-down-dropped",
			composed: "MachineGroup(2+0-1)",
		},
		{
			name:        "AFailedMachineIsDropped",
			composition: machineSet, dir: "machineset-failed",
			composed: "MachineGroup(3+0-0)", events: "ReplacingMachine",
		},
		{
			name:        "ADroppedMachineThatIsMissingIsReplaced",
			composition: machineSet, dir: "machineset-failed-dropped",
			composed: "MachineGroup(2+1-1)", events: "CreatedMachine",
		},
		{
			name:        "ANewMachineAsksForItsTokenFirst",
			composition: machineLocal, dir: "machine-fresh",
		},
		{
			name:        "AMachineWhoseUserDataIsPublishedAsksForItsVM",
			composition: machineLocal, dir: "machine-token",
			composed: "VirtualMachine", events: "VMRequested",
		},
		{
			name:        "AMachineWhoseVMRunsAwaitsItsNode",
			composition: machineLocal, dir: "machine-vm-running",
			composed: "VirtualMachine", events: "VMRunning",
		},
		{
			name:        "AMachineWhoseNodeIsReadyRunsAndRevokesItsToken",
			composition: machineLocal, dir: "machine-running",
			composed: "VirtualMachine", events: "NodeReady",
		},
		{
			name:        "AMachineWhoseVMIsLostFailsForGood",
			composition: machineLocal, dir: "machine-vm-lost",
			composed: "VirtualMachine", events: "VMLost",
		},
		{
			name:        "AMachineWhoseVMTheInventoryMissesFailsIfItsNodeIsNotReady",
			composition: machineLocal, dir: "machine-missing",
			composed: "VirtualMachine", events: "VMLost",
		},
		{
			name:        "AClassOfAnotherProviderIsRefused",
			composition: machineLocal, dir: "machine-other-provider",
			events: "ProviderMismatch",
		},
		{
			name:        "AMalformedForProviderIsRefusedFieldByField",
			composition: machineLocal, dir: "machine-malformed-class",
			events: "ForProviderInvalid",
		},
		{
			name:        "AMachineWithoutItsProviderSaysWhatIsMissing",
			composition: machineLocal, dir: "machine-without-provider", withoutProvider: true,
			events: "ProviderNotInstalled",
		},
		{
			name:        "AMachineAtVSphereAsksForAClone",
			composition: machineVSphere, dir: "machine-vsphere",
			composed: "VirtualMachine", events: "VMRequested",
		},
		{
			name:        "AMachineAtVSphereWhoseCloneRunsAwaitsItsNode",
			composition: machineVSphere, dir: "machine-vsphere-running",
			composed: "VirtualMachine", events: "VMRunning",
		},
		{
			name:        "AMachineAtAzureAsksForTheTokenOfItsUserDataFirst",
			composition: machineAzure, dir: "machine-upjet-azure",
		},
		{
			name:        "AMachineAtAzureAsksForItsNetworkInterfaceBeforeItsVM",
			composition: machineAzure, dir: "machine-upjet-azure-nic",
			composed: "NetworkInterface", events: "VMRequested",
		},
		{
			name:        "AMachineAtAzureWhoseNetworkInterfaceIsReadyAsksForItsVM",
			composition: machineAzure, dir: "machine-upjet-azure-nic-ready",
			composed: "NetworkInterface LinuxVirtualMachine",
		},
		{
			name:        "AMachineAtAzureWhoseVMRunsAsksForTheAttachmentOfItsDisk",
			composition: machineAzure, dir: "machine-upjet-azure-datadisk",
			composed: "ManagedDisk VirtualMachineDataDiskAttachment NetworkInterface LinuxVirtualMachine",
		},
		{
			name:        "AMachineAtOpenStackRequestsItsPortFirst",
			composition: machineOpenStack, dir: "machine-openstack-port",
			composed: "Port", events: "VMRequested",
		},
		{
			name:        "AMachineAtOpenStackWhosePortAndFloatingIPAreReadyRequestsItsVM",
			composition: machineOpenStack, dir: "machine-openstack-port-ready",
			composed: "FloatingIP Port VirtualMachine",
		},
		{
			name:        "AMachineAtHetznerRequestsTheCheapestInstanceTypeOfItsClass",
			composition: machineHCloud, dir: "machine-types-hcloud",
			composed: "VirtualMachine", events: "VMRequested",
		},
		{
			name:        "AMachineAtOpenStackBeginsWithTheFirstInstanceTypeAgain",
			composition: machineOpenStack, dir: "machine-types-openstack",
			composed: "VirtualMachine", events: "CapacityExhausted VMRequested",
		},
		{
			name:        "AMachineRecordsThatAnInstanceTypeWasRefused",
			composition: machineLocal, dir: "machine-types-local",
			composed: "VirtualMachine", events: "InstanceTypeRefused VMRequested",
		},
		{
			name:        "ACollectorAsksForAnInventoryOfItsInstallation",
			composition: orphansLocal, dir: "orphancollector-fresh",
			composed: "VirtualMachineInventory",
		},
		{
			name:        "ACollectorAtAWSAsksForTheInventoryOfItsRegion",
			composition: orphansAWS, dir: "orphancollector-upjet-aws",
			composed: "VirtualMachineInventory",
		},
		{
			name:        "VMsWithoutMachineAreReportedAndThoseThatHaveOneAreNot",
			composition: orphansLocal, dir: "orphancollector-report",
			composed: "VirtualMachineInventory NodeInventory", events: "OrphanFound",
		},
		{
			name:        "AnOrphanIsAdoptedToBeLookedAtBeforeItIsDeleted",
			composition: orphansLocal, dir: "orphancollector-adopt",
			composed: "VirtualMachineInventory NodeInventory VirtualMachine", events: "OrphanFound OrphanAdopted",
		},
		{
			name:        "AnOrphanThatMayBeDeletedIs",
			composition: orphansLocal, dir: "orphancollector-delete",
			composed: "VirtualMachineInventory", deleted: "NodeInventory VirtualMachine", events: "DeletingOrphan",
		},
		{
			name:        "WhileTheListFailsNothingIsDeleted",
			composition: orphansLocal, dir: "orphancollector-list-fails",
			composed: "VirtualMachineInventory NodeInventory VirtualMachine", events: "InventoryUnavailable",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := golden{t, tc.dir}
			got := g.render(composition(tc.composition), g.observed(), plane(!tc.withoutProvider)...)

			for _, is := range []struct{ what, want, got string }{
				{"composed", tc.composed, kinds(got.Composed)},
				{"deleted", tc.deleted, kinds(got.Deleted)},
				{"events", tc.events, got.reasons()},
			} {
				if is.want != is.got {
					t.Errorf("%s: want %q, got %q", is.what, is.want, is.got)
				}
			}
			g.compare(got)
		})
	}
}

// composition returns the path of a Composition of the package.
func composition(file string) string {
	return filepath.Join(kit.Root(), "apis", "machine", "compositions", file)
}

// plane returns the arguments for the objects of a control plane that all cases have, and for those of the VM's provider.
func plane(withProvider bool) []string {
	args := []string{"--required", filepath.Join("testdata", "installation.yaml"), "--required", filepath.Join("testdata", "cluster.yaml")}
	if withProvider {
		args = append(args, "--required", composition(machineLocal))
		for _, file := range schemas {
			args = append(args, "--required-schema", file)
		}
	}
	return args
}
