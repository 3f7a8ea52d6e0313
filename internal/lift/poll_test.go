package lift

import (
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/mr"
)

func TestPollInterval(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cases := map[string]struct {
		ready xpv2.Condition
		age   time.Duration
		want  time.Duration
	}{
		"WhatWasJustCreatedIsLookedAtSoon":      {xpv2.Creating(), 0, minPoll},
		"WhatTakesAMinuteIsLookedAtLess":        {xpv2.Creating(), time.Minute, 15 * time.Second},
		"WhatTakesForEverIsLookedAtAsAllElse":   {xpv2.Creating(), time.Hour, time.Minute},
		"WhatIsReadyIsLookedAtAsAllElse":        {xpv2.Available(), 0, time.Minute},
		"WhatFailedIsLookedAtAsAllElse":         {xpv2.Unavailable(), 0, time.Minute},
		"AClockThatWentBackDoesNotMakeItBusy":   {xpv2.Creating(), -time.Hour, minPoll},
		"WhatIsMissingIsLookedAtAsAllElse":      {mr.Missing("vm-1 is no longer there"), 0, time.Minute},
		"WhatIsBeingDeletedIsLookedAtAsAllElse": {xpv2.Deleting(), 0, time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vm := &v1alpha1.VirtualMachine{}
			vm.SetConditions(tc.ready)
			meta.SetExternalCreateSucceeded(vm, now.Add(-tc.age))
			if got := pollInterval(now, vm, time.Minute); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
