// Command mutation measures how well the tests of a planner check it. It changes one operator or
// statement of the planner at a time and runs the tests of its package. A mutant that no test
// detects survives.
//
// It fails if the tests kill fewer than 95 % of the mutants of a package, if a mutant survives
// that survivors.txt does not list with a reason, or if survivors.txt lists a killed mutant.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// least is the percentage of a package's mutants that its tests must kill.
const least = 95.0

//go:embed survivors.txt
var listed string

func main() {
	packages := flag.String("packages", "", "packages to mutate, separated by commas (default: all planners)")
	files := flag.String("files", "", "regular expression of the names of the files to mutate (default: all)")
	workers := flag.Int("workers", runtime.NumCPU(), "mutants that are tested at the same time")
	flag.Parse()
	if err := run(split(*packages), *files, *workers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func split(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(s string) bool { return s == "" })
}

func run(packages []string, files string, workers int) error {
	chosen, err := regexp.Compile(files)
	if err != nil {
		return fmt.Errorf("-files: %w", err)
	}
	if workers < 1 {
		return fmt.Errorf("-workers: %d must be 1 at least", workers)
	}
	survivors, err := parseSurvivors(listed)
	if err != nil {
		return fmt.Errorf("survivors.txt: %w", err)
	}
	planners, err := plannersIn(".")
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		packages = planners
	}
	for _, p := range packages {
		if !slices.Contains(planners, p) {
			return fmt.Errorf("-packages: %s is none of the planners %s", p, strings.Join(planners, ", "))
		}
	}
	var failed []error
	for _, p := range packages {
		mutants, sources, err := mutate(p)
		if err != nil {
			return err
		}
		// All mutants are compiled, and those of the chosen files tried.
		isOther := func(file string) bool { return !chosen.MatchString(path.Base(file)) }
		mutants = slices.DeleteFunc(mutants, func(m *change) bool { return isOther(m.File) })
		if err := try(p, mutants, sources, workers); err != nil {
			return err
		}
		of := maps.Clone(survivors)
		maps.DeleteFunc(of, func(s survivor, _ string) bool { return isOther(s.file) })
		v := judge(p, mutants, of)
		fmt.Println(v)
		failed = append(failed, v.err())
	}
	return errors.Join(failed...)
}
