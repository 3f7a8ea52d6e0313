package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// testTimeout ends tests that a fault lets wait for ever.
const testTimeout = "10m"

// A trial runs tests in the copy.
type trial struct {
	copy    *workCopy
	verbose bool
	// built are the packages whose tests were built without a fault.
	built map[string]bool
	// rapid are the packages whose tests use random histories.
	rapid map[string]bool
}

// baseline runs the tests of all faults without a fault: tests that fail anyway catch nothing.
func (t *trial) baseline(faults []fault) error {
	var errs []error
	seen := map[tests]bool{}
	for _, f := range faults {
		for _, of := range f.Tests {
			if seen[of] {
				continue
			}
			seen[of] = true
			if err := t.passes(of, f.Plane); err != nil {
				errs = append(errs, fmt.Errorf("without a fault: %s: %w", of, err))
			}
		}
	}
	return errors.Join(errs...)
}

// passes returns an error if tests do not pass without a fault, or if there are none.
func (t *trial) passes(of tests, plane bool) error {
	if !t.built[of.Package] {
		if out, err := t.build(of.Package); err != nil {
			return fmt.Errorf("does not compile: %w\n%s", err, out)
		}
		t.built[of.Package] = true
	}
	out, err := t.run(of, plane)
	switch {
	case err != nil:
		return fmt.Errorf("%w\n%s", err, out)
	case strings.Contains(out, "no tests to run"):
		return errors.New("no test has such a name")
	}
	return nil
}

// try a fault.
func (t *trial) try(f fault) (r result, err error) {
	r = result{fault: f, outcome: survived}
	// With the rest of a patch in the copy, the next faults would be caught by its tests.
	defer func() { err = errors.Join(err, t.copy.restore(f)) }()
	if out, err := t.copy.apply(f.Patch); err != nil {
		r.outcome, r.by = doesNotApply, strings.TrimSpace(out)
		return r, nil
	}
	for _, of := range f.Tests {
		out, err := t.build(of.Package)
		if err != nil {
			t.show(out)
			r.outcome, r.by = doesNotCompile, firstError(out)
			return r, nil
		}
		if out, err = t.run(of, f.Plane); err == nil {
			continue
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return r, err
		}
		t.show(out)
		r.outcome, r.by = caught, of.Package+" "+firstFailure(out)
		break
	}
	return r, nil
}

func (t *trial) show(out string) {
	if t.verbose {
		fmt.Println(strings.TrimRight(out, "\n"))
	}
}

// binary of the tests of a package.
func (t *trial) binary(pkg string) string {
	return filepath.Join(t.copy.work, "tests", strings.ReplaceAll(strings.TrimPrefix(pkg, "./"), "/", "_")+".test")
}

// build the tests of a package without go vet, and without symbols, which take half of the time.
func (t *trial) build(pkg string) (string, error) {
	module, relative, err := t.copy.moduleOf(pkg)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(t.binary(pkg)), 0o755); err != nil {
		return "", err
	}
	build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", t.binary(pkg), relative)
	build.Dir = module
	out, err := build.CombinedOutput()
	if err != nil {
		return string(out), err
	}
	if _, known := t.rapid[pkg]; !known {
		list := exec.Command("go", "list", "-f", "{{.TestImports}} {{.XTestImports}}", relative)
		list.Dir = module
		imports, err := list.Output()
		if err != nil {
			return string(out), err
		}
		t.rapid[pkg] = strings.Contains(string(imports), "pgregory.net/rapid")
	}
	return string(out), nil
}

// run the tests of a package that were built last, in their short form.
func (t *trial) run(of tests, plane bool) (string, error) {
	args := []string{"-test.short", "-test.count=1", "-test.failfast", "-test.paniconexit0", "-test.timeout=" + testTimeout, "-test.run=" + of.Run}
	if t.rapid[of.Package] {
		// The same histories each time.
		args = append(args, "-rapid.seed=1", "-rapid.shrinktime=1ns", "-rapid.nofailfile")
	}
	run := exec.Command(t.binary(of.Package), args...)
	run.Dir = filepath.Join(t.copy.to, of.Package)
	run.Env = append(os.Environ(), "DROVER_SHORT=1")
	if plane {
		bin, err := t.packages()
		if err != nil {
			return "", err
		}
		run.Env = append(run.Env, "DROVER_BIN="+bin, "DROVER_PACKAGES="+filepath.Join(t.copy.to, ".work", "packages"))
	}
	out, err := run.CombinedOutput()
	return string(out), err
}

// packages builds the packages of the copy, for a control plane whose Kubernetes and Crossplane are those of the
// repository. It returns the folder of the binaries.
func (t *trial) packages() (string, error) {
	bin := filepath.Join(t.copy.to, ".work", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"drover-kube", "crossplane", "crossplane-manifests"} {
		built := filepath.Join(t.copy.from, ".work", "bin", name)
		if _, err := os.Stat(built); err != nil {
			return "", fmt.Errorf("%w: run make build first", err)
		}
		if err := os.Symlink(built, filepath.Join(bin, name)); err != nil && !os.IsExist(err) {
			return "", err
		}
	}
	build := exec.Command("make", "packages")
	build.Dir = t.copy.to
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make packages: %w\n%s", err, out)
	}
	return bin, nil
}

var (
	failedTest   = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	compileError = regexp.MustCompile(`(?m)^\S+\.go:\d+:\d+: .*$`)
)

// firstFailure returns the name of the first test that failed, with its first subtest.
func firstFailure(out string) string {
	name := ""
	for _, m := range failedTest.FindAllStringSubmatch(out, -1) {
		if name != "" && !strings.HasPrefix(m[1], name+"/") {
			break
		}
		name = m[1]
	}
	if name == "" {
		return "(ended without the result of a test)"
	}
	return name
}

// firstError returns the first error of a compiler.
func firstError(out string) string {
	if line := compileError.FindString(out); line != "" {
		return line
	}
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	return line
}
