package packageguard

import "testing"

func TestDecide(t *testing.T) {
	desired := func(provider string) map[string]any { return desiredSpec(providerKind, provider, ProviderReason) }
	guard := func(provider string) *usage { return &usage{spec: desired(provider)} }
	replaying := guard("p")
	replaying.spec["replayDeletion"] = true
	terminating := guard("p")
	terminating.terminating = true

	cases := map[string]struct {
		reason string
		observation
		want action
	}{
		"NoMachine":        {"Without Machines there is nothing to guard.", observation{}, keep},
		"FirstMachine":     {"The first Machine needs the guard.", observation{true, desired("p"), nil}, create},
		"AnotherMachine":   {"A guard that is right is not written.", observation{true, desired("p"), guard("p")}, keep},
		"LastMachineGone":  {"Without Machines the package may be deleted.", observation{false, nil, guard("p")}, remove},
		"OtherProvider":    {"The guard follows the CRD to another Provider.", observation{true, desired("new"), guard("p")}, update},
		"EditedGuard":      {"With replayDeletion Crossplane would delete the Provider later.", observation{true, desired("p"), replaying}, update},
		"NoProvider":       {"A CRD that was applied by hand belongs to no package.", observation{true, nil, nil}, keep},
		"ProviderUnknown":  {"A CRD without owner proves nothing against the guard.", observation{true, nil, guard("p")}, keep},
		"NeededAgain":      {"A usage that is being deleted cannot be kept; its deletion leads to another decision.", observation{true, desired("p"), terminating}, keep},
		"DeletionUnderWay": {"A usage is deleted once.", observation{false, nil, terminating}, keep},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := decide(tc.observation); got != tc.want {
				t.Errorf("%s\ndecide(%+v): got %s, want %s", tc.reason, tc.observation, got, tc.want)
			}
		})
	}
}
