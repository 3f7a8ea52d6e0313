package native

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// NoteVM is the name of the note with the ID of a VM.
const NoteVM = "drover-vm"

// WriteNotes returns the text by which a cloud without attributes of VMs shows those of a VM: a line for its ID,
// and then one for each attribute.
func WriteNotes(id string, attributes map[string]string) string {
	lines := []string{NoteVM + ": " + id}
	for _, k := range slices.Sorted(maps.Keys(attributes)) {
		lines = append(lines, k+": "+attributes[k])
	}
	return strings.Join(lines, "\n")
}

var notes = regexp.MustCompile(`(?m)^([A-Za-z0-9._/-]+): (.*)$`)

// ReadNotes returns the ID and the attributes in a text. The ID is "" if Drover did not write the text.
func ReadNotes(text string) (id string, attributes map[string]string) {
	attributes = map[string]string{}
	for _, m := range notes.FindAllStringSubmatch(strings.ReplaceAll(text, "\r\n", "\n"), -1) {
		attributes[m[1]] = m[2]
	}
	id = attributes[NoteVM]
	delete(attributes, NoteVM)
	return id, attributes
}

var attributeName = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,128}$`)

// IsAttributeName reports whether a note can have the name.
func IsAttributeName(name string) bool { return attributeName.MatchString(name) }

// IsAttributeValue reports whether a note can have the value: it is one line of at most 256 bytes. A value with
// two lines could imitate another attribute.
func IsAttributeValue(value string) bool {
	return len(value) <= 256 && !strings.ContainsFunc(value, unicode.IsControl)
}
