package deployment

import "strings"

// shortened limits the text of a user in a message.
func shortened(text string) string {
	const most = 256
	text = strings.ToValidUTF8(text, "?")
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "..."
	}
	return text
}
