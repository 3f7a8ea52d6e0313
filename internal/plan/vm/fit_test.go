package vm

import (
	"regexp"
	"strings"
	"testing"
)

func TestFit(t *testing.T) {
	cases := map[string]struct {
		text, allowed string
		longest       int
		want          string
	}{
		"WhatFitsStaysAsItIs":        {"workers-x7k2p", "a-z0-9-", 63, "workers-x7k2p"},
		"WhatIsNotAllowedGoes":       {"Team.A", "a-z0-9-", 63, `^-eam--` + "-[a-z0-9]{10}$"},
		"WhatIsTooLongIsCut":         {strings.Repeat("a", 64), "a-z0-9-", 63, "^a{52}-[a-z0-9]{10}$"},
		"WhatIsJustAsLongIsNot":      {strings.Repeat("a", 63), "a-z0-9-", 63, strings.Repeat("a", 63)},
		"OneCharacterOfManyBytesToo": {"größe", "a-z0-9-", 63, "^gr--e-[a-z0-9]{10}$"},
		"NothingFits":                {"", "a-z", 63, ""},
	}
	env, err := fieldEnv()
	if err != nil {
		t.Fatal(err)
	}
	e, err := compile(env, "value", `tags.text.fit(tags.allowed, int(tags.longest))`)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := fitted(tc.text, regexp.MustCompile("^["+tc.allowed+"]$"), tc.longest)
			if ok, err := regexp.MatchString(tc.want, got); got != tc.want && (!ok || err != nil || !strings.HasPrefix(tc.want, "^")) {
				t.Errorf("%q, want %s", got, tc.want)
			}
			if len(got) > tc.longest {
				t.Errorf("%q has %d bytes", got, len(got))
			}
			longest := map[int]string{63: "63"}[tc.longest]
			said, err := e.eval(map[string]any{"tags": map[string]string{"text": tc.text, "allowed": tc.allowed, "longest": longest}})
			if err != nil || said != got {
				t.Errorf("as an expression %v, %v", said, err)
			}
		})
	}
}

func TestNoTwoTextsBecomeTheSame(t *testing.T) {
	re, seen := regexp.MustCompile("^[a-z-]$"), map[string]string{}
	for _, text := range []string{"a.b", "a_b", "a-b", "a b", strings.Repeat("a", 70), strings.Repeat("a", 71)} {
		got := fitted(text, re, 63)
		if before, ok := seen[got]; ok {
			t.Errorf("%q and %q are both %q", before, text, got)
		}
		seen[got] = text
	}
}

func TestFitRefusesWhatItCannotDo(t *testing.T) {
	env, err := fieldEnv()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`name.fit("z-a", 63)`: `"z-a" are no characters`,
		`name.fit("a-z", 11)`: "11 characters are too few",
	} {
		e, err := compile(env, "value", text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.eval(map[string]any{"name": "x"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
