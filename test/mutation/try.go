package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/drover-dev/drover/test/mutation/mutant"
)

// waitsAtMost is the time limit of a test run. The limit of CPU time does not end a test that
// only waits.
const waitsAtMost = 10 * time.Minute

// A trial runs the tests of a package with one mutant after the other. The tests are built
// once, with all mutants in them.
type trial struct {
	pkg, binary string
	flags       []string
	// patience is the CPU time that the tests may take: it does not depend on the load of the
	// computer. If a mutant exceeds it, its tests count as endless.
	patience time.Duration
}

// build the tests of a package in a folder. The sources stay unchanged: the compiler gets the
// sources with the mutants as an overlay.
func build(pkg string, sources []source, dir string) (*trial, error) {
	replaced := map[string]string{}
	for _, s := range sources {
		original, err := filepath.Abs(s.file)
		if err != nil {
			return nil, err
		}
		replaced[original] = filepath.Join(dir, filepath.Base(s.file))
		if err := os.WriteFile(replaced[original], s.code, 0o644); err != nil {
			return nil, err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, err
	}
	file, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "tests")
	if err := os.WriteFile(file, overlay, 0o644); err != nil {
		return nil, err
	}
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", file, "-o", binary, "./"+pkg).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: the mutants do not compile: %w\n%s", pkg, err, out)
	}
	flags, err := flagsOf(pkg)
	return &trial{pkg: pkg, binary: binary, flags: flags, patience: waitsAtMost}, err
}

// flagsOf the tests of a package. Random tests replay the same histories for each mutant, and do
// not search for the shortest one that fails.
func flagsOf(pkg string) ([]string, error) {
	flags := []string{"-test.failfast", "-test.short"}
	imports, err := exec.Command("go", "list", "-f", "{{.TestImports}} {{.XTestImports}}", "./"+pkg).Output()
	if strings.Contains(string(imports), "pgregory.net/rapid") {
		flags = append(flags, "-rapid.seed=1", "-rapid.shrinktime=1ns", "-rapid.nofailfile")
	}
	return flags, err
}

// try each mutant of a package.
func try(pkg string, mutants []*change, sources []source, workers int) error {
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t, err := build(pkg, sources, dir)
	if err != nil {
		return err
	}
	passed, took, err := t.pass(0)
	if err != nil || !passed {
		return errors.Join(err, fmt.Errorf("%s: the tests fail without a mutant", pkg))
	}
	t.patience = 5*time.Second + 10*took
	var (
		wg    sync.WaitGroup
		next  = make(chan int)
		fault = make([]error, len(mutants))
	)
	for range workers {
		wg.Go(func() {
			for i := range next {
				var passed bool
				passed, _, fault[i] = t.pass(mutants[i].Number)
				mutants[i].Killed = !passed
			}
		})
	}
	for i := range mutants {
		next <- i
	}
	close(next)
	wg.Wait()
	return errors.Join(fault...)
}

// pass reports whether the tests pass with a mutant, and how much CPU time they took. Number 0
// switches no mutant on.
func (t *trial) pass(number int) (bool, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), waitsAtMost)
	defer cancel()
	// A mutant that loops forever may use up all memory.
	limited := fmt.Sprintf(`ulimit -v 4000000 && ulimit -t %d && exec "$0" "$@"`, int(t.patience.Seconds()))
	tests := exec.CommandContext(ctx, "sh", append([]string{"-c", limited, t.binary}, t.flags...)...)
	tests.Dir = t.pkg
	tests.Env = append(os.Environ(), fmt.Sprintf("%s=%d", mutant.Variable, number))
	err := tests.Run()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		return err == nil, tests.ProcessState.UserTime() + tests.ProcessState.SystemTime(), nil
	}
	return false, 0, err
}
