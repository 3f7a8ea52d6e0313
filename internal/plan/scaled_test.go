package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestANumberOrAPercentageIsScaled(t *testing.T) {
	const invalid = -1
	for value, want := range map[string]int32{
		"0": 0, "7": 7, "10000": 10000, "10001": invalid, "-1": invalid,
		"0%": 0, "25%": 2500, "100%": 10001, "half": invalid, "-1%": invalid,
	} {
		v := intstr.Parse(value)
		// With more replicas than an absolute number may have, 100% still means all of them.
		got, message := Scaled(&v, 10001, false)
		if message != "" && strings.HasPrefix(message, `"`+value+`" must be a number from 0 to 10000`) && got == 0 {
			got = invalid
		}
		if got != want {
			t.Errorf("%s: %d %s, want %d", value, got, message, want)
		}
	}
}
