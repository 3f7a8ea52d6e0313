package main

import (
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
)

// A menuFault is a fault of the local cloud that a user of the demo can cause.
type menuFault struct {
	// name is the value of FAULT.
	name string
	// title states the behavior of the cloud.
	title string
	// fault is sent to the cloud. Its match is added.
	fault localcloud.Fault
	// oneMachine restricts the fault to the VM of one Machine. Otherwise it applies to the VMs that
	// are created from then on.
	oneMachine bool
	// look has the command that shows the consequence, and its result. MACHINE stands for the
	// Machine of oneMachine.
	look string
}

// lasting is a number of creations that no demo reaches: the fault lasts until FAULT=none.
const lasting = 1000

// menu of "make demo-break". The numbers of the menu are the positions plus one.
var menu = []menuFault{
	{
		name: "quota", title: "the quota is used up: the cloud refuses each new VM",
		fault: refusal(localcloud.CodeQuotaExceeded, "the quota of 3 VMs is used up"),
		look:  "kubectl drover why md/workers: QuotaExceeded, the message of the cloud, and the next step",
	},
	{
		name: "capacity", title: "the zone is sold out: the cloud has no room for a new VM",
		fault: refusal(localcloud.CodeCapacityExhausted, "size small is sold out in zone-a"),
		look:  "kubectl drover status: one Machine tries for all that are missing, and none is created in addition",
	},
	{
		name: "denied", title: "the account has lost its right to create VMs",
		fault: refusal(localcloud.CodePermissionDenied, "the account may not create VMs"),
		look:  "kubectl drover why md/workers: PermissionDenied, which only a user can correct, so retries are rare",
	},
	{
		name: "throttled", title: "the cloud limits the rate of requests and answers 429",
		fault: refusal(localcloud.CodeThrottled, "too many requests"),
		look:  "kubectl drover status: Throttled, and the Machine waits; nothing has to be done",
	},
	{
		name: "outage", title: "the API of the cloud is unavailable for the next ten creations",
		fault: localcloud.Fault{Kind: localcloud.FaultUnavailable, Message: "maintenance", Count: 10, Delay: localcloud.Duration(2 * time.Second)},
		look:  "kubectl drover status md workers --watch: the creation is tried again until the cloud answers",
	},
	{
		name: "lost-answer", title: "the next VM is created, and the answer is lost",
		fault: localcloud.Fault{Kind: localcloud.FaultCreateAnswerLost, Count: 1},
		look:  "kubectl drover why md/workers: CreateResultUnknown; the Machine cannot know whether it has a VM, so it is replaced",
	},
	{
		name: "failed-vm", title: "the next VM is accepted, and fails five seconds later",
		fault: localcloud.Fault{Kind: localcloud.FaultCreateFails, Code: localcloud.CodeInternal, Message: "the host of the VM died", Count: 1, Delay: localcloud.Duration(5 * time.Second)},
		look:  "kubectl get events --watch: the Machine fails with the error of the VM, and its MachineSet replaces it",
	},
	{
		name: "never-boots", title: "new VMs run, and their operating system never starts",
		fault: localcloud.Fault{Kind: localcloud.FaultNeverBoots, Count: lasting},
		look:  "kubectl drover why md/workers: the last milestone is VMRunning, no Node joins, and the console is the next thing to read",
	},
	{
		name: "vanish", title: "a VM is gone, as if it had never existed",
		fault: localcloud.Fault{Kind: localcloud.FaultVanish}, oneMachine: true,
		look: "kubectl drover why ma/MACHINE: the Node stops, the provider looks for the VM, and the Machine is replaced as VMLost",
	},
	{
		name: "kubelet", title: "a VM runs on, and its kubelet has stopped",
		fault: localcloud.Fault{Kind: localcloud.FaultKubeletStops}, oneMachine: true,
		look: "kubectl drover why ma/MACHINE: the Node is not ready, and the Machine is replaced after the ten minutes of spec.health.timeout",
	},
}

func refusal(code, message string) localcloud.Fault {
	return localcloud.Fault{Kind: localcloud.FaultCreateFails, Code: code, Message: message, Count: lasting}
}

// on returns the fault as it is sent to the cloud. machine is the name of the Machine if the fault
// is restricted to one.
func (f menuFault) on(machine string) localcloud.Fault {
	out := f.fault
	out.Match.Tags = map[string]string{machinev1alpha1.TagNamespace: namespace}
	if f.oneMachine {
		out.Match.Tags[machinev1alpha1.TagMachine] = machine
	}
	return out
}
