package native

import (
	"errors"
	"fmt"
	"regexp"
	"testing"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
)

func TestAnErrorGetsAClassOnce(t *testing.T) {
	answered, cut := errors.New("quota of 3 VMs"), errors.New("connection reset")
	known := fmt.Errorf("at the second try: %w", Invalid("image", "%q: no such image", "x"))
	answer := func(err error) *Error {
		if errors.Is(err, answered) {
			return &Error{Class: fn.ErrorQuotaExceeded, Err: err}
		}
		return nil
	}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"NoErrorStaysNone":                  {nil, "<nil>"},
		"AResponseHasTheClassOfTheCloud":    {answered, "QuotaExceeded: cannot create the VM: quota of 3 VMs"},
		"AnErrorWithoutResponseIsTransient": {cut, "Transient: cannot create the VM: connection reset"},
		"AnErrorWithAClassStaysAsItIs":      {known, known.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(Classify("cannot create the VM", tc.err, answer)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheFirstRuleThatMatchesATextGivesTheClass(t *testing.T) {
	rules := Rules{
		{Text: regexp.MustCompile(`quota`), Class: fn.ErrorQuotaExceeded},
		{Text: regexp.MustCompile(`space`), Class: fn.ErrorCapacityExhausted},
	}
	for name, tc := range map[string]struct {
		texts []string
		want  fn.ErrorCode
		known bool
	}{
		"OneText":          {[]string{"no space left"}, fn.ErrorCapacityExhausted, true},
		"TheOrderOfRules":  {[]string{"no space left", "quota"}, fn.ErrorQuotaExceeded, true},
		"NoRuleMatches":    {[]string{"what?"}, fn.ErrorTransient, false},
		"ThereIsNoTextYet": {nil, fn.ErrorTransient, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, known := rules.ClassOf(tc.texts...); got != tc.want || known != tc.known {
				t.Errorf("got %s, %t, want %s, %t", got, known, tc.want, tc.known)
			}
		})
	}
}
