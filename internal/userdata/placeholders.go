package userdata

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// ownValues of placeholders in user data that Drover did not write.
func (f Filling) ownValues() map[string]string {
	return map[string]string{
		clusterv1alpha1.PlaceholderToken:          f.Token,
		clusterv1alpha1.PlaceholderServer:         f.Server,
		clusterv1alpha1.PlaceholderCA:             base64.StdEncoding.EncodeToString(f.CA),
		clusterv1alpha1.PlaceholderUID:            f.UID,
		clusterv1alpha1.PlaceholderConfigUID:      f.ConfigUID,
		clusterv1alpha1.PlaceholderTokenMCM:       f.Token,
		clusterv1alpha1.PlaceholderNameMCM:        f.Name,
		clusterv1alpha1.PlaceholderNameKubermatic: f.Name,
	}
}

// tokenPlaceholders stand for the join token.
var tokenPlaceholders = []string{clusterv1alpha1.PlaceholderToken, clusterv1alpha1.PlaceholderTokenMCM}

// An escaping writes a text inside another one.
type escaping func(string) string

// escapings in which placeholders are found. Their values are written in the same escaping.
var escapings = []escaping{
	func(s string) string { return s },
	url.QueryEscape,
	lowerHex(url.QueryEscape),
	escape,
	lowerHex(escape),
	escapeJSON,
}

// hexEscape is an escaped byte of a URL.
var hexEscape = regexp.MustCompile(`%[0-9A-F]{2}`)

// lowerHex writes escaped bytes with small letters.
func lowerHex(e escaping) escaping {
	return func(s string) string { return hexEscape.ReplaceAllStringFunc(e(s), strings.ToLower) }
}

// escapeJSON escapes as encoders do that consider HTML. Values have no character that needs another escape.
func escapeJSON(s string) string {
	b := strings.Builder{}
	for _, r := range s {
		if strings.ContainsRune("<>&", r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// A replacer replaces the placeholders of user data that Drover did not write.
type replacer struct {
	// all placeholders in all escapings.
	all *strings.Replacer
	// tokens removes the placeholders of the join token, in all escapings.
	tokens *strings.Replacer
}

// newReplacer returns a replacer of placeholders by values.
func newReplacer(values map[string]string) replacer {
	var all, tokens []string
	known := map[string]bool{}
	add := func(e escaping, placeholder, value string) {
		text := e(placeholder)
		if known[text] {
			return
		}
		known[text] = true
		all = append(all, text, e(value))
		if slices.Contains(tokenPlaceholders, placeholder) {
			tokens = append(tokens, text, "")
		}
	}
	// If several placeholders begin at the same place, the first one counts. In a shell, <<MACHINE_NAME>file is a
	// here-document: it stays as it is, and so does any text of which the placeholder with single brackets is only
	// a part.
	single := clusterv1alpha1.PlaceholderNameKubermatic
	for _, e := range escapings {
		for _, p := range slices.Sorted(maps.Keys(values)) {
			if p != single {
				add(e, p, values[p])
			}
		}
		for _, around := range []string{"<" + single, single + ">"} {
			add(e, around, around)
		}
		add(e, single, values[single])
	}
	return replacer{all: strings.NewReplacer(all...), tokens: strings.NewReplacer(tokens...)}
}

// replace replaces the placeholders of a text that is not base64.
func (p replacer) replace(text string) (replaced string, changed, hasToken bool) {
	replaced = p.all.Replace(text)
	return replaced, replaced != text, p.tokens.Replace(text) != text
}

// encodedText matches text that may be base64: a line, or lines that an encoder wrapped, indented as in a block
// of YAML. A + or / may be escaped as in a URL.
var encodedText = regexp.MustCompile(`(?:[A-Za-z0-9+/]|%2[BbFf]){4,}(?:\r?\n[ \t]*[A-Za-z0-9+/]+)*(?:=|%3[Dd]){0,2}`)

// replaceAll replaces the placeholders of a text, also inside base64.
func (p replacer) replaceAll(text string) (replaced string, hasToken bool) {
	b := strings.Builder{}
	end := 0
	plain := func(part string) {
		r, _, has := p.replace(part)
		b.WriteString(r)
		hasToken = hasToken || has
	}
	for _, at := range encodedText.FindAllStringIndex(text, -1) {
		r, changed, has := p.replaceEncoded(text[at[0]:at[1]], isEndOfBlock(text[at[1]:]))
		if !changed {
			continue
		}
		plain(text[end:at[0]])
		b.WriteString(r)
		hasToken, end = hasToken || has, at[1]
	}
	plain(text[end:])
	return b.String(), hasToken
}

// isEndOfBlock reports whether wrapped base64 may end before a text. A key of YAML ends with a colon.
func isEndOfBlock(rest string) bool {
	return rest == "" || strings.IndexByte("\r\n\"'`", rest[0]) >= 0
}

// wrapping is the end of a line of wrapped base64, and the indentation of the next.
var wrapping = regexp.MustCompile(`\r?\n[ \t]*`)

// replaceEncoded replaces placeholders in lines that may be base64. A word on the line after base64 may look
// like a part of it. So lines are combined only if an encoder may have wrapped them, and each line is decoded
// at most three times: a Secret has up to 1 MiB.
func (p replacer) replaceEncoded(text string, isEnd bool) (replaced string, changed, hasToken bool) {
	lines := wrapping.Split(text, -1)
	breaks := append(wrapping.FindAllString(text, -1), "")
	b := strings.Builder{}
	for i := 0; i < len(lines); {
		n := blockLength(lines[i:], breaks[i:])
		if n > 1 && i+n == len(lines) && !isEnd {
			n--
		}
		r, ok, has := "", false, false
		for _, tried := range []int{n, n - 1} {
			if tried < 1 || tried == 1 && n > 2 {
				continue
			}
			if r, ok, has = p.replaceBlock(lines[i:i+tried], breaks[i]); ok {
				n = tried
				break
			}
		}
		for j := i; j < i+n && !ok; j++ {
			if j > i {
				b.WriteString(breaks[j-1])
			}
			b.WriteString(lines[j])
		}
		b.WriteString(r)
		b.WriteString(breaks[i+n-1])
		changed, hasToken = changed || ok, hasToken || has
		i += n
	}
	return b.String(), changed, hasToken
}

// blockLength returns how many lines an encoder may have wrapped: they have the same indentation, and all are
// as long as the first, except that the last may be shorter.
func blockLength(lines, breaks []string) int {
	n := 1
	for n < len(lines) && len(lines[0])%4 == 0 && breaks[n-1] == breaks[0] && len(lines[n-1]) == len(lines[0]) && len(lines[n]) <= len(lines[0]) {
		n++
	}
	return n
}

// escapedBase64 undoes the escapes of a URL in base64.
var escapedBase64 = strings.NewReplacer("%2B", "+", "%2b", "+", "%2F", "/", "%2f", "/", "%3D", "=", "%3d", "=")

// replaceBlock replaces the placeholders in lines of base64. It returns false if they are not base64, or have
// no placeholder. Wrapped base64 is padded: each encoder that wraps also pads.
func (p replacer) replaceBlock(lines []string, newline string) (replaced string, changed, hasToken bool) {
	joined := escapedBase64.Replace(strings.Join(lines, ""))
	encoding := base64.StdEncoding
	if len(joined)%4 != 0 && len(lines) == 1 {
		encoding = base64.RawStdEncoding
	}
	decoded, err := encoding.DecodeString(joined)
	if err != nil || len(lines) > 1 && endsWithWord(decoded, lines) {
		return "", false, false
	}
	inner, changed, hasToken := p.replace(string(decoded))
	if !changed {
		return "", false, false
	}
	encoded := encoding.EncodeToString([]byte(inner))
	if len(lines) == 1 {
		return encoded, true, hasToken
	}
	b := strings.Builder{}
	for width := len(lines[0]); len(encoded) > width; encoded = encoded[width:] {
		b.WriteString(encoded[:width] + newline)
	}
	b.WriteString(encoded)
	return b.String(), true, hasToken
}

// word is a line of letters only: padding and digits would be part of base64.
var word = regexp.MustCompile(`^[A-Za-z]+$`)

// endsWithWord reports whether the last line after wrapped base64 is a word instead: without it the decoded
// bytes are text, with it they are not.
func endsWithWord(decoded []byte, lines []string) bool {
	before := base64.StdEncoding.DecodedLen(len(lines[0]) * (len(lines) - 1))
	return word.MatchString(lines[len(lines)-1]) && !utf8.Valid(decoded) && utf8.Valid(decoded[:min(before, len(decoded))])
}
