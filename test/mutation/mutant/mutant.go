// Package mutant has the functions that the mutated files of a planner call. One build has all
// mutants. The environment variable MUTANT has the number of the mutant that is switched on.
package mutant

import (
	"cmp"
	"os"
	"strconv"
)

// Variable has the number of the mutant that is switched on.
const Variable = "MUTANT"

var on, _ = strconv.Atoi(os.Getenv(Variable))

// Is reports whether the mutant with the number is switched on.
func Is(n int) bool { return n == on }

// Less is a < b, or a <= b with the mutant bound, or a >= b with the mutant negated.
func Less[T cmp.Ordered](bound, negated int, a, b T) bool {
	return (a < b || Is(bound) && a == b) != Is(negated)
}

// AtMost is a <= b, or a < b with the mutant bound, or a > b with the mutant negated.
func AtMost[T cmp.Ordered](bound, negated int, a, b T) bool {
	return (a <= b && !(Is(bound) && a == b)) != Is(negated)
}

// More is a > b, or a >= b with the mutant bound, or a <= b with the mutant negated.
func More[T cmp.Ordered](bound, negated int, a, b T) bool { return Less(bound, negated, b, a) }

// AtLeast is a >= b, or a > b with the mutant bound, or a < b with the mutant negated.
func AtLeast[T cmp.Ordered](bound, negated int, a, b T) bool { return AtMost(bound, negated, b, a) }

type number interface {
	integer | ~float32 | ~float64
}

type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Sum is a + b, or a - b with the mutant.
func Sum[T number](n int, a, b T) T {
	if Is(n) {
		return a - b
	}
	return a + b
}

// Difference is a - b, or a + b with the mutant.
func Difference[T number](n int, a, b T) T {
	if Is(n) {
		return a + b
	}
	return a - b
}

// Product is a * b, or a / b with the mutant.
func Product[T number](n int, a, b T) T {
	if Is(n) {
		return a / b
	}
	return a * b
}

// Quotient is a / b, or a * b with the mutant.
func Quotient[T number](n int, a, b T) T {
	if Is(n) {
		return a * b
	}
	return a / b
}

// Left is a << b, or a >> b with the mutant.
func Left[T, U integer](n int, a T, b U) T {
	if Is(n) {
		return a >> b
	}
	return a << b
}

// Right is a >> b, or a << b with the mutant.
func Right[T, U integer](n int, a T, b U) T {
	if Is(n) {
		return a << b
	}
	return a >> b
}
