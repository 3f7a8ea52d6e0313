package terraform

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/terraform/plugin"
)

// minSecret is the minimum length of a text that is masked: a shorter one is no secret, and masking
// it would make errors unreadable.
const minSecret = 6

const masked = "(sensitive value)"

// A maskedError has the text of another error without the secrets.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }

// Unwrap returns the original error, whose text must not be shown.
func (e *maskedError) Unwrap() error { return e.err }

// mask replaces secrets in an error, in the forms in which providers print them: plain, quoted, in
// base64, and each line of a longer text.
func mask(err error, secrets []string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, form := range formsOf(secrets) {
		text = strings.ReplaceAll(text, form, masked)
	}
	if text == err.Error() {
		return err
	}
	return &maskedError{text: text, err: err}
}

// formsOf returns the forms of secrets, the longest first, so that none is masked in part.
func formsOf(secrets []string) []string {
	var out []string
	for _, s := range secrets {
		quoted, _ := json.Marshal(s)
		forms := []string{s, strings.Trim(string(quoted), `"`), base64.StdEncoding.EncodeToString([]byte(s))}
		for _, line := range strings.Split(s, "\n") {
			// Short lines of user data are the same everywhere, so masking them hides nothing.
			if line = strings.TrimSpace(line); len(line) >= 2*minSecret {
				forms = append(forms, line)
			}
		}
		for _, f := range forms {
			if len(f) >= minSecret {
				out = append(out, f)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(out)
}

// lostAnswer matches errors of providers that sent a request and got no response of the cloud, or one
// that leaves open whether the request was carried out. A refused connection sent nothing.
var lostAnswer = regexp.MustCompile(`(?i)\bEOF\b|connection reset|broken pipe|i/o timeout|deadline exceeded|client\.timeout|timeout awaiting|context canceled|` +
	`connection was closed|\b50[0234]\b|internal server error|bad gateway|gateway time-?out|service unavailable|CreationUnknown`)

// isUnknown reports whether a creation that ended with the error, and without a state, may have
// created a VM.
func isUnknown(err error) bool {
	for _, e := range joined(err) {
		d := (*plugin.Diagnostic)(nil)
		if !errors.As(e, &d) || lostAnswer.MatchString(d.Error()) {
			return true
		}
	}
	return false
}

// joined returns the single errors of a joined one.
func joined(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok { // Of errors.Join itself.
		return many.Unwrap()
	}
	return []error{err}
}
