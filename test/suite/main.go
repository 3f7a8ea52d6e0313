// Command suite runs the parts of the tests, measures them, holds them to a budget, and selects those that a change can affect.
//
//	suite stage NAME COMMAND...      runs a part of the tests
//	go test -exec "suite test" ...   runs the tests of a package
//	suite report BUDGET SPENT        compares the records with the budget, and fails if the tests of a package spent more
//	                                 than twice their budget; prints the reads of tests that reads.txt lacks
//	suite changed [-list] SINCE      runs the tests that the changes since a commit can affect, or lists their packages
//
// The budget is in CPU seconds, because the time that a test takes depends on the other load of the computer.
// If the environment variable DROVER_SPENT names a file, the first two append a record to it.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	code, err := command(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

var errUsage = errors.New("usage: suite stage NAME COMMAND..., suite test BINARY ARGS..., suite report BUDGET SPENT, or suite changed [-list] SINCE")

// command returns the exit code of the command that it runs.
func command(args []string) (int, error) {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch {
	case verb == "stage" && len(args) >= 2:
		return runStage(args[0], args[1:])
	case verb == "test" && len(args) >= 1:
		return runTest(args)
	case verb == "report" && len(args) == 2:
		return 0, compare(args[0], args[1])
	case verb == "changed" && len(args) == 1:
		return 0, runChanged(args[0], false)
	case verb == "changed" && len(args) == 2 && args[0] == "-list":
		return 0, runChanged(args[1], true)
	}
	return 2, errUsage
}

// runStage runs a part of the tests and records its cost.
func runStage(name string, argv []string) (int, error) {
	fmt.Printf("== %s\n", name)
	spent, code, err := run(argv)
	if err != nil {
		return 1, err
	}
	fmt.Printf("== %s: exit code %d after %.0f s, %.0f CPU s\n", name, code, spent.Wall, spent.CPU)
	spent.Kind, spent.Name, spent.Failed = kindStage, name, code != 0
	return code, spent.save()
}

// runTest runs the tests of a package and records their cost and their reads.
func runTest(argv []string) (int, error) {
	dir, err := os.Getwd()
	if err != nil {
		return 1, err
	}
	tmp, err := os.MkdirTemp("", "suite-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	testlog := filepath.Join(tmp, "log")
	spent, code, err := run(append(argv, testlogFlag+testlog))
	if err != nil {
		return 1, err
	}
	root := rootOf(dir)
	spent.Kind, spent.Name, spent.Failed = kindPackage, packageName(root, dir, argv[0]), code != 0
	if root != "" {
		// A test that was killed has written no log.
		spent.Reads, _ = readsOf(testlog, dir, root)
	}
	return code, spent.save()
}

// compare prints the records beside the budget, and checks them.
func compare(budgetFile, spentFile string) error {
	b, err := readBudget(budgetFile)
	if err != nil {
		return err
	}
	reads, err := loadReads(readsFile)
	if err != nil {
		return err
	}
	records, err := load(spentFile)
	if err != nil {
		return err
	}
	over, err := report(os.Stdout, b, records)
	if err != nil {
		return err
	}
	if missing := missingReads(records, reads); len(missing) > 0 {
		fmt.Printf("%s lacks reads of tests, so that make test-changed does not select them; add:\n%s\n", readsFile, strings.Join(missing, "\n"))
	}
	if len(over) > 0 {
		return fmt.Errorf("more than %d times the budget of %s:\n%s", excess, budgetFile, strings.Join(over, "\n"))
	}
	return nil
}
