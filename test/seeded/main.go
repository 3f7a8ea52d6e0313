// Command seeded measures how well the tests of the whole product hold its promises. A seeded fault
// is a small patch that breaks one promise to users, as an engineer might break it by mistake. The
// command applies one fault at a time to a copy of the repository, and runs the tests that own the
// promise in their short form. A fault that no test detects survives.
//
// It fails if a fault survives without a reason, if a fault with a reason is caught, if a patch does not
// apply or compile any more, or if the tests catch fewer than 95 % of all faults.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
)

// faultsDir is the folder of the faults, relative to the repository.
const faultsDir = "test/seeded/faults"

// options of the command.
type options struct {
	only                  *regexp.Regexp
	list, verbose, planes bool
}

func main() {
	only := flag.String("run", "", "regular expression: only the faults whose names match it")
	list := flag.Bool("list", false, "print the faults with their promises and tests, and try none")
	verbose := flag.Bool("v", false, "print the output of the tests that catch a fault, and of builds that fail")
	planes := flag.Bool("planes", false, "also try the faults whose tests need a control plane (make build first)")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err == nil {
		err = run(options{only: pattern, list: *list, verbose: *verbose, planes: *planes})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(o options) error {
	all, err := readFaults(faultsDir)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(f fault) bool { return !o.only.MatchString(f.Name) })
	if len(chosen) == 0 {
		return fmt.Errorf("-run: no fault in %s matches %s", faultsDir, o.only)
	}
	if o.list {
		for _, f := range chosen {
			fmt.Println(f.describe())
		}
		return nil
	}
	c, err := newCopy(".", ".work/seeded")
	if err != nil {
		return err
	}
	t := &trial{copy: c, verbose: o.verbose, built: map[string]bool{}, rapid: map[string]bool{}}
	tried := slices.DeleteFunc(slices.Clone(chosen), func(f fault) bool { return f.Plane && !o.planes })
	if err := t.baseline(tried); err != nil {
		return err
	}
	width := widthOf(chosen)
	var results []result
	for _, f := range chosen {
		r := result{fault: f, outcome: skipped}
		if !f.Plane || o.planes {
			if r, err = t.try(f); err != nil {
				return err
			}
		}
		results = append(results, r)
		fmt.Println(r.row(width))
	}
	verdicts := []error{judge(results)}
	if len(chosen) == len(all) {
		verdicts = append(verdicts, judgeShare(results))
	}
	fmt.Println(summary(results))
	return errors.Join(verdicts...)
}
