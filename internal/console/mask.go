package console

import (
	"regexp"
	"strings"
)

// minSecret is the shortest text that is masked wherever it occurs: a shorter one occurs by
// accident.
const minSecret = 8

// The known forms of secrets. A key that is cut off at either end is masked as far as it can be recognized.
var (
	joinToken     = regexp.MustCompile(`(^|[^a-z0-9])[a-z0-9]{6}\.[a-z0-9]{16,}`)
	webToken      = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)?`)
	privateKey    = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`)
	endOfKey      = regexp.MustCompile(`(?s)\A.*-----END [A-Z0-9 ]*PRIVATE KEY-----`)
	credentials   = regexp.MustCompile(`://[^/\s@]+@`)
	authorization = regexp.MustCompile(`(?i)\b((?:basic|bearer)\s+)[A-Za-z0-9._~+/=-]{8,}`)
	assignment    = regexp.MustCompile(`(?i)((?:password|passwd|secret|token|api[_-]?key|access[_-]?key|credential)[a-z0-9_-]*["']?\s*[:=]\s*)(\((?:secret|token)\)|"[^"\n]*"|'[^'\n]*'|[^\s"']+)`)
)

// mask replaces texts that look like secrets, and the given secrets.
func mask(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= minSecret {
			text = strings.ReplaceAll(text, s, "(secret)")
		}
	}
	text = privateKey.ReplaceAllString(text, "(private key)")
	text = endOfKey.ReplaceAllString(text, "(private key)")
	text = joinToken.ReplaceAllString(text, "$1(token)")
	text = webToken.ReplaceAllString(text, "(token)")
	text = credentials.ReplaceAllString(text, "://(secret)@")
	text = authorization.ReplaceAllString(text, "${1}(secret)")
	if !assignment.MatchString(text) {
		return text
	}
	b := strings.Builder{}
	for line := range strings.Lines(text) {
		// A step may be called fetch-token: the text after it is its state.
		if !stepLine.MatchString(strings.TrimSuffix(line, "\n")) {
			line = assignment.ReplaceAllString(line, "${1}(secret)")
		}
		b.WriteString(line)
	}
	return b.String()
}
