package main

import (
	"errors"
	"fmt"
	"strings"
)

// A survivor is a line of survivors.txt: mutants that no test needs to detect.
type survivor struct {
	file, kind, text string
}

// parseSurvivors reads lines with four fields, separated by " | ": the file, the type of the
// change, the text of the line and the reason. Empty lines and those that begin with # are
// ignored.
func parseSurvivors(text string) (map[survivor]string, error) {
	out := map[survivor]string{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, " | ")
		if len(fields) < 4 || strings.TrimSpace(fields[len(fields)-1]) == "" {
			return nil, fmt.Errorf("line %d: %q must be: file | type | text of the line | reason", i+1, line)
		}
		last := len(fields) - 1
		s := survivor{file: fields[0], kind: fields[1], text: strings.Join(fields[2:last], " | ")}
		if _, twice := out[s]; twice {
			return nil, fmt.Errorf("line %d: %q is listed twice", i+1, line)
		}
		out[s] = fields[last]
	}
	return out, nil
}

// A verdict on the mutants of a package.
type verdict struct {
	pkg           string
	mutants, kept int
	// unlisted mutants survive without a reason.
	unlisted []*change
	// outdated lines of survivors.txt match no surviving mutant.
	outdated []survivor
}

func judge(pkg string, mutants []*change, survivors map[survivor]string) verdict {
	v := verdict{pkg: pkg}
	seen := map[survivor]bool{}
	for _, m := range mutants {
		v.mutants++
		if m.Killed {
			continue
		}
		v.kept++
		s := survivor{m.File, m.Type, m.Text}
		if _, ok := survivors[s]; !ok {
			v.unlisted = append(v.unlisted, m)
		}
		seen[s] = true
	}
	for s := range survivors {
		if strings.HasPrefix(s.file, pkg+"/") && !strings.Contains(strings.TrimPrefix(s.file, pkg+"/"), "/") && !seen[s] {
			v.outdated = append(v.outdated, s)
		}
	}
	return v
}

func (v verdict) killed() float64 {
	if v.mutants == 0 {
		return 100
	}
	return 100 * float64(v.mutants-v.kept) / float64(v.mutants)
}

func (v verdict) String() string {
	return fmt.Sprintf("%-28s %4d mutants, %3d survive: %5.1f %% killed", v.pkg, v.mutants, v.kept, v.killed())
}

func (v verdict) err() error {
	var errs []error
	if v.killed() < least {
		errs = append(errs, fmt.Errorf("%s: the tests kill %.1f %% of the mutants, and must kill %g %%", v.pkg, v.killed(), least))
	}
	for _, m := range v.unlisted {
		errs = append(errs, fmt.Errorf("%s:%d: a mutant survives (%s): %s", m.File, m.Line, m.Type, m.Text))
	}
	for _, s := range v.outdated {
		errs = append(errs, fmt.Errorf("survivors.txt: no mutant survives of: %s | %s | %s", s.file, s.kind, s.text))
	}
	return errors.Join(errs...)
}
