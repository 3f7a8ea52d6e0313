package main

import (
	"errors"
	"fmt"
	"strings"
)

// least is the percentage of the faults that the tests must catch.
const least = 95.0

// An outcome of a fault.
type outcome string

const (
	caught         outcome = "caught by"
	survived       outcome = "SURVIVED"
	doesNotApply   outcome = "DOES NOT APPLY"
	doesNotCompile outcome = "DOES NOT COMPILE"
	skipped        outcome = "skipped: needs a control plane"
)

// A result of a fault.
type result struct {
	fault
	outcome outcome
	// by is the package and the first test that caught the fault, or the error of the patch or its build.
	by string
}

func (r result) verdict() string {
	switch {
	case r.outcome == caught && r.Survives != "":
		return "OUTDATED REASON: " + string(caught) + " " + r.by
	case r.outcome == survived && r.Survives != "":
		return "survives: " + r.Survives
	}
	return strings.TrimSpace(string(r.outcome) + " " + r.by)
}

// row of the table: the fault, its promise and its verdict.
func (r result) row(width int) string {
	return fmt.Sprintf("%-*s | %s | %s", width, r.Name, r.Promise, r.verdict())
}

// widthOf the names of faults.
func widthOf(faults []fault) int {
	width := 0
	for _, f := range faults {
		width = max(width, len(f.Name))
	}
	return width
}

// err is nil if the result is as the header of the fault has it.
func (r result) err() error {
	switch {
	case r.outcome == skipped, r.outcome == caught && r.Survives == "", r.outcome == survived && r.Survives != "":
		return nil
	case r.outcome == caught:
		return fmt.Errorf("%s: %s catches it: delete its line Survives", r.Name, r.by)
	case r.outcome == survived:
		return fmt.Errorf("%s: no test of %s catches it: add one, or a line Survives with the reason", r.Name, join(r.Tests))
	case r.outcome == doesNotApply:
		return fmt.Errorf("%s: the patch does not apply any more, renew it: %s", r.Name, r.by)
	}
	return fmt.Errorf("%s: does not compile: %s", r.Name, r.by)
}

func join(all []tests) string {
	var out []string
	for _, t := range all {
		out = append(out, t.String())
	}
	return strings.Join(out, ", ")
}

// judge returns the errors of all results.
func judge(results []result) error {
	var errs []error
	for _, r := range results {
		errs = append(errs, r.err())
	}
	return errors.Join(errs...)
}

func count(results []result) (caughtOnes, tried int) {
	for _, r := range results {
		if r.outcome == skipped {
			continue
		}
		tried++
		if r.outcome == caught {
			caughtOnes++
		}
	}
	return caughtOnes, tried
}

// judgeShare returns an error if the tests catch too few of the faults, whatever the reasons.
func judgeShare(results []result) error {
	n, tried := count(results)
	if tried == 0 || 100*float64(n) >= least*float64(tried) {
		return nil
	}
	return fmt.Errorf("the tests catch %.1f %% of the faults, and must catch %g %%", 100*float64(n)/float64(tried), least)
}

func summary(results []result) string {
	n, tried := count(results)
	return fmt.Sprintf("%d of %d caught", n, tried)
}
