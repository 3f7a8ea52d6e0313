package conformance

import "slices"

// The short form of the suite, which make test runs, has the life of a Machine at one cloud of each provider, and the other
// cases at the clouds of standsFor. The differences between clouds in those cases have unit tests: the classes of errors in
// test/providers, the inventories in internal/cloud and internal/inventory, and the native providers in nativetest.
// The long form is make conformance.
var (
	// standsFor has a cloud of each kind: one whose provider is Drover's, and one whose provider the suite simulates.
	standsFor = []string{"hcloud", "upjet-aws"}
	// standsForCase has the clouds of the cases that those two cannot have.
	standsForCase = map[string][]string{CaseConsole: {"openstack"}, CasePoliciesOff: {"scaleway"}}
	// rebootsAt are the clouds at which the short form reboots a VM: one whose provider is lifted, and one on the frame of
	// the package native.
	rebootsAt = map[string]bool{"hcloud": true, "proxmox": true}
)

// isCloudOnlyInLong reports whether the short form leaves out a cloud: one of provider-terraform except terraform-local, or one
// on the frame of the package native except Proxmox VE. A unit test of their provider, nativetest.Run, plays most cases
// against the same fake.
func isCloudOnlyInLong(c Cloud) bool {
	l, ok := c.(interface{ IsOnlyInLong() bool })
	return ok && l.IsOnlyInLong()
}

// isOnlyInLong reports whether the short form leaves out a case of a cloud.
func isOnlyInLong(c Cloud, tc Case) bool {
	at := standsFor
	if special, ok := standsForCase[tc.Name]; ok {
		at = special
	}
	return !tc.inLife && !slices.Contains(at, c.Provider()) || tc.Name == CaseReboot && !rebootsAt[c.Provider()]
}
