package console

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A State of a step.
type State string

// States of a step.
const (
	// Running means that the step was started.
	Running State = "Running"
	// Failed means that the step failed. It is tried again.
	Failed State = "Failed"
	// Done means that the step is done.
	Done State = "Done"
)

// A Step of drover-bootstrap, as it reports itself on the console.
type Step struct {
	// Name of the step. It is empty if all steps are done.
	Name  string `json:"name,omitempty"`
	State State  `json:"state"`
	// ExitCode of a step that failed, of at most three digits.
	ExitCode int `json:"exitCode,omitempty"`
	// Output is the end of the output of a step that failed, in one line of at most 300 bytes.
	Output string `json:"output,omitempty"`
}

// stepLine matches the lines of the script bootstrap.sh of the user data. The name is bounded like that of a
// profile's step.
var stepLine = regexp.MustCompile(`drover-bootstrap: (?:step ([a-z0-9][-a-z0-9]{0,62}): (?:(started)|(done)|failed \(exit ([0-9]{1,3})\), trying again in 5s)|all steps are done)$`)

// maxOutput of a step that failed, in lines and bytes.
const (
	maxOutputLines = 3
	maxOutput      = 300
)

// LastStep returns the step that an excerpt reports last, nil if there is none. A step that failed and was
// started again still counts as failed. Lines about steps that the user data does not have are ignored.
func LastStep(excerpt string, steps []string) *Step {
	var last *Step
	var output []string
	for line := range strings.Lines(excerpt) {
		line = strings.TrimSuffix(line, "\n")
		found := stepLine.FindStringSubmatch(line)
		if found == nil || len(steps) == 0 || found[1] != "" && !slices.Contains(steps, found[1]) {
			output = append(output, withoutPrefix(line))
			continue
		}
		next := &Step{Name: found[1], State: Done}
		switch {
		case found[2] != "" && last != nil && last.State == Failed && last.Name == next.Name:
			next = last
		case found[2] != "":
			next.State = Running
		case found[4] != "":
			next.State, next.Output = Failed, joined(output)
			next.ExitCode, _ = strconv.Atoi(found[4]) // It has three digits at most.
		}
		last, output = next, nil
	}
	return last
}

// joined is the end of a step's output in one line.
func joined(output []string) string {
	output = output[max(0, len(output)-maxOutputLines):]
	return clip(strings.Join(output, " | "), maxOutput)
}

// linePrefix matches the text before that of a program: the time of the local cloud, the time of the kernel,
// and the name in the journal.
var linePrefix = regexp.MustCompile(`^(?:[0-9-]{10}T[0-9:.]{8,}(?:Z|[+-][0-9:]{5}) )?(?:\[ *[0-9]+\.[0-9]+\] )?(?:[A-Za-z0-9_.@-]{1,40}\[[0-9]{1,10}\]: )?`)

func withoutPrefix(line string) string { return line[len(linePrefix.FindString(line)):] }
