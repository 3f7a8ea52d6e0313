package text

import "testing"

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
