package conformance

import "os"

// envShort asks for the short form of the suite, which make test runs: the cases that take minutes
// with one cloud of each kind. The long form is make conformance.
const envShort = "DROVER_CONFORMANCE_SHORT"

func isShort() bool { return os.Getenv(envShort) != "" }

var (
	takeMinutes = map[string]bool{CaseRestart: true, CaseSlowCloud: true, CaseAllocation: true, CaseThrottling: true}
	// standsFor the others of its kind in these cases: a provider of Drover, whose process is
	// killed, and one that is played.
	standsFor = map[string]bool{"hcloud": true, "aws": true}
	// onlyInLong are clouds of provider-terraform beside terraform-local.
	onlyInLong = map[string]bool{"terraform-hcloud": true, "terraform-openstack": true}
)
