package dialect

// Counts has the number of lines, and of matches by the name of the measure.
type Counts struct {
	Lines   int
	Matches map[string]int
}

// A Match is a place in a text that a measure counts.
type Match struct {
	Measure string
	Line    Line
}

// Count applies all measures to the lines.
func Count(lines []Line) (Counts, []Match) {
	c := Counts{Lines: len(lines), Matches: map[string]int{}}
	var matches []Match
	for _, line := range lines {
		for _, m := range Measures {
			n := len(m.pattern.FindAllStringIndex(line.Text, -1))
			c.Matches[m.Name] += n
			for range n {
				matches = append(matches, Match{Measure: m.Name, Line: line})
			}
		}
	}
	return c, matches
}

// Add returns the sum of two counts.
func (c Counts) Add(d Counts) Counts {
	sum := Counts{Lines: c.Lines + d.Lines, Matches: map[string]int{}}
	for _, m := range Measures {
		sum.Matches[m.Name] = c.Matches[m.Name] + d.Matches[m.Name]
	}
	return sum
}

// Rate is the number of matches per thousand lines.
func (c Counts) Rate(measure string) float64 {
	if c.Lines == 0 {
		return 0
	}
	return float64(c.Matches[measure]) * 1000 / float64(c.Lines)
}
