package plan

import (
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// longestBoot bounds a first boot as a measure of later ones: a Node may have waited a night for its network.
const longestBoot = time.Hour

// FirstBoot returns how long a Machine took from its running VM to its Ready Node, one hour at most. A reboot of the Machine
// has at least that time. It is 0 while that is not known.
func FirstBoot(join *machinev1alpha1.JoinStatus) time.Duration {
	ran, ready := join.At(machinev1alpha1.JoinVMRunning), join.At(machinev1alpha1.JoinNodeReady)
	if ran == nil || ready == nil {
		return 0
	}
	return min(ready.Sub(ran.Time), longestBoot)
}
