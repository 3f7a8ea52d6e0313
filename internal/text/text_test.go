package text

import (
	"strings"
	"testing"
)

func TestShorten(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"AShortTextStays":            {"abc", "abc"},
		"ATextThatFitsStays":         {"abcd", "abcd"},
		"ALongTextIsCut":             {"abcde", "abcd..."},
		"ACharacterIsNotCutInHalves": {"abcäe", "abc..."},
		"NothingStays":               {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Shorten(tc.text, 4); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestLine(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"ALineStays":                          {"node is gone", "node is gone"},
		"LinesBecomeOne":                      {"a\n\n  b\tc\r\n", "a b c"},
		"AnEscapeSequenceIsNone":              {"a\x1b[31mred\x07", "a [31mred"},
		"TextDoesNotRunBackwards":             {"a\u202eb", "ab"},
		"InvalidBytesAreRemoved":              {"a\xffb", "ab"},
		"ALongTextIsCut":                      {strings.Repeat("x", 30), strings.Repeat("x", 20) + "..."},
		"AVeryLongTextIsCut":                  {strings.Repeat("x", 1<<20), strings.Repeat("x", 20) + "..."},
		"ControlCharactersDoNotUseUpTheLimit": {strings.Repeat("\x00", 60) + "end", "end"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Line(tc.text, 20); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
