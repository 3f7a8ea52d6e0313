package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
)

// A Budget has the CPU seconds of the stages and of the packages.
type Budget struct {
	lines []line
}

// A line of the budget: the names that it is for, and their seconds.
type line struct {
	kind, pattern string
	seconds       float64
}

// readBudget reads a budget from a file.
func readBudget(file string) (Budget, error) {
	f, err := os.Open(file)
	if err != nil {
		return Budget{}, err
	}
	defer func() { _ = f.Close() }()
	b, err := parseBudget(f)
	if err != nil {
		return Budget{}, fmt.Errorf("%s: %w", file, err)
	}
	return b, nil
}

// parseBudget reads lines of a kind, a name or pattern, and seconds. Text after a # is a comment.
func parseBudget(r io.Reader) (Budget, error) {
	var b Budget
	n := 0
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		n++
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 3 || fields[0] != kindStage && fields[0] != kindPackage {
			return Budget{}, fmt.Errorf("line %d: %q: want \"stage NAME SECONDS\" or \"package FOLDER SECONDS\"", n, text)
		}
		seconds, err := strconv.ParseFloat(fields[2], 64)
		if err != nil || seconds <= 0 {
			return Budget{}, fmt.Errorf("line %d: %q: SECONDS must be a number above 0", n, fields[2])
		}
		if _, err := path.Match(fields[1], ""); err != nil {
			return Budget{}, fmt.Errorf("line %d: %q: %w", n, fields[1], err)
		}
		b.lines = append(b.lines, line{kind: fields[0], pattern: fields[1], seconds: seconds})
	}
	return b, lines.Err()
}

// of returns the budget of a stage or package: that of the first line whose pattern matches its name. A pattern that is
// only a * matches every name. Without such a line the budget is 0.
func (b Budget) of(kind, name string) float64 {
	for _, l := range b.lines {
		if l.kind != kind {
			continue
		}
		if ok, _ := path.Match(l.pattern, name); ok || l.pattern == "*" {
			return l.seconds
		}
	}
	return 0
}
