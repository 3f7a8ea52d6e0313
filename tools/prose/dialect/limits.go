package dialect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits has the most matches per thousand lines, by folder and measure. A folder that it does not
// name has the limits of the measures themselves.
type Limits map[string]map[string]int

// headroom is the step of limits. A limit is a multiple of it, so that a few new lines of comments
// elsewhere in a folder do not exceed a limit that they have nothing to do with.
const headroom = 5

// ParseLimits reads lines of a folder and a number for each measure. A line that begins with "#" is a
// comment.
func ParseLimits(text string) (Limits, error) {
	limits := Limits{}
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 1+len(Measures) {
			return nil, fmt.Errorf("line %d: %q has %d columns: must be a folder and %d numbers", i+1, line, len(fields), len(Measures))
		}
		if _, exists := limits[fields[0]]; exists {
			return nil, fmt.Errorf("line %d: folder %q: must not be there twice", i+1, fields[0])
		}
		of := map[string]int{}
		for j, m := range Measures {
			n, err := strconv.Atoi(fields[1+j])
			if err != nil || n < 0 {
				return nil, fmt.Errorf("line %d: folder %q: limit %q of %q: must be a number of at least 0", i+1, fields[0], fields[1+j], m.Name)
			}
			of[m.Name] = n
		}
		limits[fields[0]] = of
	}
	return limits, nil
}

// String is the text that ParseLimits reads, sorted by folder.
func (l Limits) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %-30s", "matches per 1000 lines")
	for _, m := range Measures {
		fmt.Fprintf(&b, " %7s", m.Name)
	}
	b.WriteString("\n")
	folders := make([]string, 0, len(l))
	for folder := range l {
		folders = append(folders, folder)
	}
	slices.Sort(folders)
	for _, folder := range folders {
		fmt.Fprintf(&b, "%-32s", folder)
		for _, m := range Measures {
			fmt.Fprintf(&b, " %7d", l[folder][m.Name])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Of is the limit of a measure in a folder.
func (l Limits) Of(folder string, m Measure) int {
	if of, ok := l[folder]; ok {
		return of[m.Name]
	}
	return m.Limit
}

// isAllowed reports whether a count is within a limit. A short folder may have one match whatever its
// rate: in a folder of ten lines one word is a rate of 100.
func isAllowed(c Counts, measure string, limit int) bool {
	return c.Matches[measure] <= max(1, limit*c.Lines/1000)
}

// Violations names each folder and measure that exceeds its limit.
func (l Limits) Violations(folders map[string]Counts) []string {
	var out []string
	for folder, c := range folders {
		for _, m := range Measures {
			if limit := l.Of(folder, m); !isAllowed(c, m.Name, limit) {
				out = append(out, fmt.Sprintf("%s: %q: %d matches in %d lines, %.1f per 1000 lines: must be at most %d",
					folder, m.Name, c.Matches[m.Name], c.Lines, c.Rate(m.Name), limit))
			}
		}
	}
	slices.Sort(out)
	return out
}

// Tightened returns limits that the folders keep and that are nowhere higher than these. Folders that
// keep the limits of the measures, or do not exist, are left out. It fails for a folder that exceeds
// its limit: limits only go down.
func (l Limits) Tightened(folders map[string]Counts) (Limits, error) {
	if violations := l.Violations(folders); len(violations) > 0 && len(l) > 0 {
		return nil, fmt.Errorf("limits only go down:\n%s", strings.Join(violations, "\n"))
	}
	out := Limits{}
	for folder, c := range folders {
		of, isException := map[string]int{}, false
		for _, m := range Measures {
			of[m.Name] = m.Limit
			if isAllowed(c, m.Name, m.Limit) {
				continue
			}
			isException = true
			of[m.Name] = (int(c.Rate(m.Name))/headroom + 1) * headroom
			if old, ok := l[folder]; ok {
				of[m.Name] = min(of[m.Name], old[m.Name])
			}
		}
		if isException {
			out[folder] = of
		}
	}
	return out, nil
}
