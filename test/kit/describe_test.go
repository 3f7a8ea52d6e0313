package kit

import (
	"slices"
	"strings"
	"testing"
)

func TestADescriptionNamesHowManyItLeavesOut(t *testing.T) {
	for name, c := range map[string]struct {
		most int
		want []int
		text string
	}{
		"AllFit":         {4, []int{1, 2, 3, 4}, ""},
		"TheOldestGoOut": {3, []int{2, 3, 4}, "Warning: 1 older are left out\n"},
		"NoneFits":       {0, []int{}, "Warning: 4 older are left out\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &strings.Builder{}
			if got := newest(b, []int{1, 2, 3, 4}, c.most, "Warning"); !slices.Equal(got, c.want) || b.String() != c.text {
				t.Errorf("%v %q, want %v %q", got, b, c.want, c.text)
			}
		})
	}
}
