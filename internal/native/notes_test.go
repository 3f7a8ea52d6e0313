package native

import (
	"strings"
	"testing"
)

func TestNotesAreReadAsWritten(t *testing.T) {
	for name, attributes := range map[string]map[string]string{
		"WithoutAttributes": {},
		"WithAttributes":    {"drover-machine": "a: b", "drover-installation": "1d"},
	} {
		t.Run(name, func(t *testing.T) {
			id, got := ReadNotes(strings.ReplaceAll(WriteNotes("u", attributes), "\n", "\r\n"))
			if id != "u" || len(got) != len(attributes) {
				t.Fatalf("read %s %v", id, got)
			}
			for k, v := range attributes {
				if got[k] != v {
					t.Errorf("%s is %q, want %q", k, got[k], v)
				}
			}
		})
	}
	if id, _ := ReadNotes("A VM of mine.\nNote: x"); id != "" {
		t.Errorf("read %q in a description of a user", id)
	}
}
