package console

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Limits of an excerpt.
const (
	// MaxBytes is the size of an excerpt in bytes.
	MaxBytes = 4 << 10
	// MaxLines is the number of lines of an excerpt.
	MaxLines = 40
	// maxLine is the size of one line in bytes.
	maxLine = 512
	// maxInput bounds how much of a console is read, from its end.
	maxInput = 64 << 10
)

// Lines that explain a failure are kept, even if more recent ones would leave no room for them: cloud-init
// prints all host keys of the VM after its errors, and a login prompt follows.
const (
	maxKept      = 8
	maxKeptBytes = MaxBytes / 4
	gap          = "[...]"
)

// Excerpt returns the end of a console's text, in whole lines, of at most MaxBytes and MaxLines. Earlier lines
// about steps and refused user data come first, before a line "[...]". Control sequences are removed. Texts
// that look like secrets are masked, as are the given secrets. The excerpt of an excerpt is that excerpt. It is
// empty if there is no text.
func Excerpt(text string, secrets ...string) string {
	if len(text) > maxInput {
		// The first line is cut, and may be a part of a secret.
		_, text, _ = strings.Cut(text[len(text)-maxInput:], "\n")
	}
	var lines []string
	for line := range strings.Lines(mask(printable(text), secrets)) {
		if line = strings.TrimRightFunc(line, unicode.IsSpace); line == "" {
			continue
		}
		// The rest of a clipped line may look like a secret that the whole line did not.
		lines = append(lines, mask(clip(line, maxLine), secrets))
	}
	return strings.Join(selectLines(lines), "")
}

// selectLines returns those that fit, each with its line break.
func selectLines(lines []string) []string {
	first := lastThatFit(lines, MaxLines, MaxBytes)
	if first == 0 {
		return withBreaks(lines)
	}
	rest := lastThatFit(lines, MaxLines-maxKept-1, MaxBytes-maxKeptBytes-len(gap)-1)
	var kept []string
	size := 0
	for _, line := range slices.Backward(lines[:rest]) {
		if !explains(line) {
			continue
		}
		if size += len(line) + 1; len(kept) == maxKept || size > maxKeptBytes {
			break
		}
		kept = append(kept, line)
	}
	if len(kept) == 0 {
		return withBreaks(lines[first:])
	}
	slices.Reverse(kept)
	kept = append(kept, gap)
	return withBreaks(append(kept, lines[rest:]...))
}

// lastThatFit returns the index of the first line of the longest end that fits.
func lastThatFit(lines []string, count, size int) int {
	first := len(lines)
	for first > 0 && len(lines)-first < count {
		if size -= len(lines[first-1]) + 1; size < 0 {
			break
		}
		first--
	}
	return first
}

func withBreaks(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		out = append(out, line+"\n")
	}
	return out
}

// controlSequences of terminals: CSI, OSC, other strings, and the rest.
var controlSequences = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[PX^_][^\x1b\n]*(?:\x1b\\)?|[ -/]*[0-~])?`)

// printable returns a text without the sequences that a terminal interprets, such as colors, cursor movements
// and the direction of text.
func printable(text string) string {
	text = controlSequences.ReplaceAllString(strings.ToValidUTF8(text, "?"), "")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r':
			return '\n'
		case r == '\t':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, text)
}

// clip shortens a text to a size in bytes, at the end of a character.
func clip(text string, size int) string {
	if len(text) <= size {
		return text
	}
	const more = "..."
	return strings.TrimSuffix(strings.ToValidUTF8(text[:size-len(more)], ""), ".") + more
}
