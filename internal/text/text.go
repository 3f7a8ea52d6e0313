// Package text bounds untrusted texts that a status, an event or a message shows, and recognizes those that a user encoded
// once more than they should be.
package text

import (
	"strings"
	"unicode"
)

// Shorten returns a text of at most size bytes as it is, and otherwise its first size bytes, at the end of a
// character, and "...".
func Shorten(s string, size int) string {
	if len(s) <= size {
		return s
	}
	return strings.ToValidUTF8(s[:size], "") + "..."
}

// Line returns a text as one line of at most size bytes and "...": each run of control characters and spaces
// becomes one space, and invalid bytes and characters that change the direction of writing are removed.
func Line(s string, size int) string {
	// A part of a text that is much too long is enough.
	if most := 4*size + 64; len(s) > most {
		s = s[:most]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return Shorten(strings.Join(strings.Fields(s), " "), size)
}
