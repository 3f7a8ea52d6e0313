package mutant

import "testing"

func TestOneMutantIsSwitchedOn(t *testing.T) {
	const none, first, second = 0, 1, 2
	type results [3]any // With none, the first and the second mutant.
	for name, tc := range map[string]struct {
		of   func() any
		want results
	}{
		"1 < 2":  {func() any { return Less(first, second, 1, 2) }, results{true, true, false}},
		"2 < 2":  {func() any { return Less(first, second, 2, 2) }, results{false, true, true}},
		"3 < 2":  {func() any { return Less(first, second, 3, 2) }, results{false, false, true}},
		"1 <= 2": {func() any { return AtMost(first, second, 1, 2) }, results{true, true, false}},
		"2 <= 2": {func() any { return AtMost(first, second, 2, 2) }, results{true, false, false}},
		"3 <= 2": {func() any { return AtMost(first, second, 3, 2) }, results{false, false, true}},
		"1 > 2":  {func() any { return More(first, second, 1, 2) }, results{false, false, true}},
		"2 > 2":  {func() any { return More(first, second, 2, 2) }, results{false, true, true}},
		"3 > 2":  {func() any { return More(first, second, 3, 2) }, results{true, true, false}},
		"1 >= 2": {func() any { return AtLeast(first, second, 1, 2) }, results{false, false, true}},
		"2 >= 2": {func() any { return AtLeast(first, second, 2, 2) }, results{true, false, false}},
		"3 >= 2": {func() any { return AtLeast(first, second, 3, 2) }, results{true, true, false}},
		"8 + 2":  {func() any { return Sum(first, 8, 2) }, results{10, 6, 10}},
		"8 - 2":  {func() any { return Difference(first, 8, 2) }, results{6, 10, 6}},
		"8 * 2":  {func() any { return Product(first, 8, 2) }, results{16, 4, 16}},
		"8 / 2":  {func() any { return Quotient(first, 8, 2) }, results{4, 16, 4}},
		"8 << 2": {func() any { return Left(first, 8, 2) }, results{32, 2, 32}},
		"8 >> 2": {func() any { return Right(first, 8, 2) }, results{2, 32, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { on = none })
			for on = none; on <= second; on++ {
				if got := tc.of(); got != tc.want[on] {
					t.Errorf("with mutant %d: %v, want %v", on, got, tc.want[on])
				}
			}
		})
	}
}
