// Package text bounds untrusted texts that a status, an event or a message shows, and recognizes those that a user encoded
// once more than they should be.
package text

import "strings"

// Shorten returns a text of at most size bytes as it is, and otherwise its first size bytes, at the end of a
// character, and "...".
func Shorten(s string, size int) string {
	if len(s) <= size {
		return s
	}
	return strings.ToValidUTF8(s[:size], "") + "..."
}
