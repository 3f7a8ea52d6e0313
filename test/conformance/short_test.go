package conformance

import "os"

// envShort requests the short form of the suite, which make test runs: only one cloud of each kind
// runs the cases that take minutes. make conformance runs the long form.
const envShort = "DROVER_CONFORMANCE_SHORT"

func isShort() bool { return os.Getenv(envShort) != "" }

var (
	takeMinutes = map[string]bool{CaseRestart: true, CaseSlowCloud: true, CaseAllocation: true, CaseThrottling: true}
	// standsFor are the clouds that run these cases, one of each kind: a provider of Drover, whose
	// process is killed, and a played cloud.
	standsFor = map[string]bool{"hcloud": true, "aws": true}
	// onlyInLong are the clouds of provider-terraform except terraform-local.
	onlyInLong = map[string]bool{"terraform-hcloud": true, "terraform-openstack": true}
)
