package vsphere

import (
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

func TestPatienceGrowsWithTheFailuresOfOneClass(t *testing.T) {
	busy, full := soap.WrapVimFault(&types.TaskInProgress{}), soap.WrapVimFault(&types.NoDiskSpace{})
	cases := map[string]struct {
		before []error
		err    error
		want   time.Duration
	}{
		"TheFirst":               {nil, full, 30 * time.Second},
		"TheSecond":              {[]error{full}, full, time.Minute},
		"AtMost":                 {[]error{full, full, full, full, full}, full, 5 * time.Minute},
		"AfterThoseOfAnother":    {[]error{busy, busy, busy}, full, 30 * time.Second},
		"AfterOneOfAnotherAgain": {[]error{full, full, busy}, full, 30 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := &note{}
			for _, err := range tc.before {
				n.fail(time.Now(), err, 1, nil)
			}
			if got := n.fail(time.Now(), tc.err, 1, nil); got != tc.want {
				t.Errorf("waits %s, want %s", got, tc.want)
			}
		})
	}
}
