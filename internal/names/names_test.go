package names

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNames(t *testing.T) {
	const uid, other = types.UID("0b1c7f0e-1111-4222-8333-944445555666"), types.UID("9a8b7c6d-1111-4222-8333-944445555666")
	long := strings.Repeat("x", 56) + "-" + strings.Repeat("y", 6)

	t.Run("SameViewGivesSameName", func(t *testing.T) {
		if a, b := Machine("set", uid, 7), Machine("set", uid, 7); a != b {
			t.Errorf("Machine: %q, then %q", a, b)
		}
	})
	t.Run("OwnerThatComesBackUnderItsNameGivesOtherNames", func(t *testing.T) {
		for what, pair := range map[string][2]string{
			"MachineSet": {MachineSet("md", uid, "h"), MachineSet("md", other, "h")},
			"Machine":    {Machine("set", uid, 1), Machine("set", other, 1)},
			"OfMachine":  {OfMachine("m", uid), OfMachine("m", other)},
		} {
			if pair[0] == pair[1] {
				t.Errorf("%s: both %q", what, pair[0])
			}
		}
	})
	t.Run("LongNamesAreCutToLabelsAndKeepTheirSuffix", func(t *testing.T) {
		for _, got := range []string{MachineSet(long, uid, "h"), Machine(long, uid, 1), OfMachine(long, uid)} {
			if errs := validation.IsDNS1123Label(got); len(errs) > 0 {
				t.Errorf("%q: %v", got, errs)
			}
		}
		if Machine(long, uid, 1) == Machine(long, uid, 2) {
			t.Error("the counter was cut off")
		}
	})
	t.Run("PartsDoNotRunIntoEachOther", func(t *testing.T) {
		if Hash("a", "bc") == Hash("ab", "c") {
			t.Error("same hash")
		}
	})
	t.Run("AThousandMachinesOfOneSetHaveFewCollisions", func(t *testing.T) {
		seen := map[string]bool{}
		for n := range int64(1000) {
			seen[Machine("set", uid, n)] = true
		}
		if len(seen) < 995 {
			t.Errorf("%d different names of 1000", len(seen))
		}
	})
}
