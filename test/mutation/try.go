package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// patience is how long the tests of a package may take. Those of a planner take seconds: a
// mutant that takes longer does not end.
const patience = 3 * time.Minute

// applied returns the source with the change.
func (m *mutant) applied(source []byte) []byte {
	return bytes.Join([][]byte{source[:m.from], []byte(m.by), source[m.to:]}, nil)
}

// try each mutant: run the tests of its package with it, and set its status.
func try(pkg string, mutants []*mutant, workers int) error {
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("go", "test", "-count=1", "./"+pkg).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: the tests fail without a mutant: %w\n%s", pkg, err, out)
	}
	var (
		wg    sync.WaitGroup
		next  = make(chan int)
		fault = make([]error, len(mutants))
	)
	for range workers {
		wg.Go(func() {
			for i := range next {
				mutants[i].Status, fault[i] = mutants[i].test(pkg, filepath.Join(dir, strconv.Itoa(i)))
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

// test a mutant, with its files in a folder that does not exist yet. The sources stay as they
// are: the compiler gets the changed file as an overlay.
func (m *mutant) test(pkg, dir string) (status, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	source, err := os.ReadFile(m.File)
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(m.File)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(m.File))
	if err := os.WriteFile(changed, m.applied(source), 0o644); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	file, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "tests")
	if err := os.WriteFile(file, overlay, 0o644); err != nil {
		return "", err
	}
	var exit *exec.ExitError
	if err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", file, "-o", binary, "./"+pkg).Run(); errors.As(err, &exit) {
		return notViable, nil
	} else if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tests := exec.CommandContext(ctx, binary, "-test.failfast")
	tests.Dir = pkg
	if tests.Run() != nil {
		return killed, nil
	}
	return lived, nil
}
