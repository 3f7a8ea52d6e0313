package pool

import (
	"cmp"
	"slices"
)

// goals divides n over the members. The stages approach the result step by step. keeps returns the
// number that an exhausted failure domain keeps. current returns the present number of a member, so
// that the remainder of the division moves as few Machines as possible.
func (f *fleet) goals(n int32, keeps, current func(*member) int32) map[*member]int32 {
	out := map[*member]int32{}
	wanted := slices.DeleteFunc(slices.Clone(f.members), func(m *member) bool { return !m.wanted })
	isOpen := func(m *member) bool { return m.exhausted() == nil }
	divide(n, wanted, current, out)
	if !slices.ContainsFunc(wanted, isOpen) {
		// All are exhausted: a Machine that moved would wait in the other failure domain too.
		if sum(wanted, current) == n {
			for _, m := range wanted {
				out[m] = current(m)
			}
		}
		return out
	}
	var open []*member
	for _, m := range wanted {
		if isOpen(m) {
			open = append(open, m)
			continue
		}
		out[m] = min(out[m], keeps(m))
		n -= out[m]
	}
	divide(n, open, current, out)
	return out
}

// divide n evenly. The remainder goes to the members with the largest current numbers.
func divide(n int32, over []*member, current func(*member) int32, into map[*member]int32) {
	if len(over) == 0 {
		return
	}
	sorted := slices.Clone(over)
	slices.SortStableFunc(sorted, func(a, b *member) int { return cmp.Compare(current(b), current(a)) })
	each, rest := n/int32(len(over)), n%int32(len(over))
	for i, m := range sorted {
		into[m] = each
		if int32(i) < rest {
			into[m]++
		}
	}
}
