// Package text bounds texts that others chose and that a status, an event or a message shows.
package text

import "strings"

// Shorten returns a text of at most size bytes as it is, and otherwise its first size bytes, in
// whole characters, and "...".
func Shorten(s string, size int) string {
	if len(s) <= size {
		return s
	}
	return strings.ToValidUTF8(s[:size], "") + "..."
}
