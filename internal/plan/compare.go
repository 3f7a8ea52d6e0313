package plan

// CompareBool sorts false before true, for [slices.SortFunc].
func CompareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
