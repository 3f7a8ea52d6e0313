// Package circle has two files that use each other.
package circle

// Plan uses the other file.
func Plan() int { return facts{}.count() }

func one() int { return 1 }
