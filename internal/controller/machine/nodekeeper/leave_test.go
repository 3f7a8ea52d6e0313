package nodekeeper

import (
	"errors"
	"testing"

	"github.com/drover-dev/drover/internal/target"
)

func TestWhenAMachineMayLeaveItsNode(t *testing.T) {
	unreachable := &target.Error{Kind: target.Unreachable, Detail: "refused"}
	noSecret := &target.Error{Kind: target.SecretNotFound, Detail: "no Secret"}
	cases := map[string]struct {
		nodeFindings
		exists, abandoned, waits bool
	}{
		"WithoutANodeItGoesAtOnce":                          {nodeFindings: nodeFindings{}},
		"WithANodeItStays":                                  {nodeFindings: nodeFindings{hasNode: true, hadNode: true}, exists: true},
		"AfterTheTimeoutTheNodeIsStillDeletedFirst":         {nodeFindings: nodeFindings{hasNode: true, hadNode: true, isLate: true}, exists: true},
		"ANodeWithTheProviderIDOfAnotherVMIsLeft":           {nodeFindings: nodeFindings{foreign: "n", hadNode: true}, abandoned: true},
		"AnUnreachableClusterIsWaitedFor":                   {nodeFindings: nodeFindings{hadNode: true, err: unreachable}, waits: true},
		"AlsoWhenNoNodeWasSeenYet":                          {nodeFindings: nodeFindings{err: unreachable}, waits: true},
		"ButNotBeyondTheTimeout":                            {nodeFindings: nodeFindings{hadNode: true, err: unreachable, isLate: true}, abandoned: true},
		"NorWhenTheDrainIsSkipped":                          {nodeFindings: nodeFindings{hadNode: true, err: unreachable, skip: true}, abandoned: true},
		"LostCredentialsOfAClusterWithOurNodeAreWaitedFor":  {nodeFindings: nodeFindings{hadNode: true, err: noSecret}, waits: true},
		"CredentialsThatNeverWorkedAreNot":                  {nodeFindings: nodeFindings{err: noSecret}},
		"AnErrorOfTheControlClusterSaysNothingOfTheTargets": {nodeFindings: nodeFindings{err: errors.New("timeout")}, waits: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := tc.verdict()
			if v.exists != tc.exists || (v.abandoned != "") != tc.abandoned || (v.err != nil) != tc.waits {
				t.Errorf("verdict %+v", v)
			}
		})
	}
}
