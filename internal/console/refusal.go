package console

import (
	"regexp"
	"strings"
)

// refusals are messages of cloud-init and Ignition if they cannot read or apply user data.
var refusals = regexp.MustCompile(strings.Join([]string{
	// cloud-init: not YAML, of no type that it knows, or a module that failed.
	`Failed loading yaml blob`,
	`Failed at merging in cloud config part`,
	`Unhandled non-multipart \(`,
	`Unhandled unknown content-type \(`,
	`Failed calling handler `,
	`Running module \S+ \(.*\) failed`,
	`Failed to run module `,
	`Failed to shellify `,
	// Ignition, which prints this line whatever failed before it.
	`Ignition failed: `,
	`Failed to start .*[Ii]gnition[- (]`,
}, "|"))

// Refusal returns the first line of an excerpt in which cloud-init or Ignition reports that it cannot read or
// apply the user data, of at most 300 bytes: later lines report consequences of it. It is empty if there is
// none.
func Refusal(excerpt string) string {
	for line := range strings.Lines(excerpt) {
		if refusals.MatchString(line) {
			return clip(withoutPrefix(strings.TrimSuffix(line, "\n")), maxOutput)
		}
	}
	return ""
}

// LastLines returns the end of an excerpt in one line of at most 300 bytes.
func LastLines(excerpt string) string {
	var lines []string
	for line := range strings.Lines(excerpt) {
		lines = append(lines, withoutPrefix(strings.TrimSuffix(line, "\n")))
	}
	return joined(lines)
}

// explains reports whether a line shows the progress of a VM's bootstrap.
func explains(line string) bool { return stepLine.MatchString(line) || refusals.MatchString(line) }
