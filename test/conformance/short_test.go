package conformance

import fn "github.com/drover-dev/drover/apis/fn/v1alpha1"

// The short form of the suite, which make test runs, leaves out cases of most clouds. The long form
// is make conformance.
var (
	// onlyAtSome are the cases that the short form runs at the clouds of standsFor only: those that
	// take minutes, and those whose part that differs between clouds has a unit test in
	// test/providers, such as the class of an error.
	onlyAtSome = map[string]bool{
		CaseRestart: true, CaseSlowCloud: true, CaseAllocation: true, CaseThrottling: true,
		CaseWrongField:                true,
		string(fn.ErrorQuotaExceeded): true, string(fn.ErrorInvalidRequest): true, string(fn.ErrorPermissionDenied): true, string(fn.ErrorThrottled): true,
	}
	// standsFor has a cloud of each kind: one whose provider is Drover's, and one whose provider the
	// suite simulates.
	standsFor = map[string]bool{"hcloud": true, "aws": true}
	// onlyInLong are the clouds of provider-terraform except terraform-local, and those on the frame of the package
	// native except Proxmox VE. A unit test of their provider, nativetest.Run, plays most cases against the same fake.
	onlyInLong = map[string]bool{"terraform-hcloud": true, "terraform-openstack": true, "nutanix": true, "alibaba": true, "vcd": true, "metalstack": true}
	// onlyLife is the cloud of which the short form runs only the cases in the life of a Machine. Its provider has that
	// unit test, too.
	onlyLife = map[string]bool{"proxmox": true}
	// rebootsAt are the clouds at which the short form reboots a VM: one whose provider is lifted, and one on the frame of
	// the package native.
	rebootsAt = map[string]bool{"hcloud": true, "proxmox": true}
)

// isOnlyInLong reports whether the short form leaves out a case of a cloud.
func isOnlyInLong(c Cloud, tc Case) bool {
	return onlyAtSome[tc.Name] && !standsFor[c.Provider()] || onlyLife[c.Provider()] && !tc.inLife || tc.Name == CaseReboot && !rebootsAt[c.Provider()]
}
