package kit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"regexp"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// window is the number of bytes of a secret that are compared first. Shorter secrets are not
// searched for: texts contain them by chance.
const window = 12

// publicKeys of Secrets have values that other objects have as well.
var publicKeys = map[string]bool{
	"server": true, "endpoint": true, "namespace": true, "ca.crt": true, "tls.crt": true, "username": true,
	"token-id": true, "description": true, "expiration": true, "auth-extra-groups": true, "format": true,
}

// secretKeys match the keys of JSON in a Secret whose values are secret, unless the key ends with ID.
var secretKeys = regexp.MustCompile(`(?i)token|secret$|password|key$`)

// secretsIn returns the parts of a Secret's value that no other text has by chance.
func secretsIn(key string, value []byte) []string {
	if publicKeys[key] {
		return nil
	}
	var out []string
	add := func(s string) {
		// The last part of a token is the secret part: <id>.<secret>, or the signature of a JWT.
		if i := strings.LastIndexByte(s, '.'); i >= 0 {
			s = s[i+1:]
		}
		if len(s) >= window {
			out = append(out, s)
		}
	}
	isPEM, isJSON := false, false
	for block, rest := pem.Decode(value); block != nil; block, rest = pem.Decode(rest) {
		isPEM = true
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			add(base64.StdEncoding.EncodeToString(block.Bytes)[:60])
			add(base64.StdEncoding.EncodeToString(pem.EncodeToMemory(block))[80:160])
		}
	}
	credentials := map[string]any{}
	if json.Unmarshal(value, &credentials) == nil {
		isJSON = true
		for name, v := range credentials {
			if s, ok := v.(string); ok && secretKeys.MatchString(name) && !strings.HasSuffix(name, "ID") {
				add(s)
			}
		}
	}
	if kc, err := clientcmd.Load(value); err == nil {
		for _, u := range kc.AuthInfos {
			add(u.Token)
			add(u.Password)
			out = append(out, secretsIn("client-key-data", u.ClientKeyData)...)
		}
	}
	// Other values without white space are secret as a whole: a user's Secret may have any keys.
	if !isPEM && !isJSON && !bytes.ContainsAny(value, " \t\r\n") && len(value) <= 4096 {
		add(string(value))
	}
	return out
}

// A search finds each of many secrets, in any of their forms, in one pass over a text.
type search struct {
	starts []bool // of forms, by their first three bytes
	forms  map[[window]byte][]form
}

// A form of a secret.
type form struct {
	text   []byte
	secret string
}

func newSearch(secrets map[string]string) *search {
	s := &search{starts: make([]bool, 1<<24), forms: map[[window]byte][]form{}}
	for secret := range secrets {
		for _, text := range forms(secret) {
			begin := [window]byte([]byte(text))
			s.starts[startOf([]byte(text))] = true
			s.forms[begin] = append(s.forms[begin], form{[]byte(text), secret})
		}
	}
	return s
}

func startOf(text []byte) int { return int(text[0])<<16 | int(text[1])<<8 | int(text[2]) }

// zipped matches the beginning of gzip in base64.
var zipped = regexp.MustCompile(`H4sI[A-Za-z0-9+/]{20,}`)

// find the secrets in a text, each with the text before its first occurrence.
func (s *search) find(text []byte) map[string]string {
	var found map[string]string
	note := func(secret, before string) {
		if found == nil {
			found = map[string]string{}
		}
		if _, ok := found[secret]; !ok {
			found[secret] = before
		}
	}
	for i := 0; i+window <= len(text); i++ {
		if !s.starts[startOf(text[i:])] {
			continue
		}
		for _, f := range s.forms[[window]byte(text[i:i+window])] {
			if bytes.HasPrefix(text[i:], f.text) {
				note(f.secret, string(text[max(0, i-200):i]))
			}
		}
	}
	// User data for clouds may be compressed, which hides secrets in it.
	for _, encoded := range zipped.FindAll(text, -1) {
		for secret := range s.find(unzip(encoded)) {
			note(secret, "(gzip in base64)")
		}
	}
	return found
}

// unzip decodes gzip in base64, as far as it is valid.
func unzip(encoded []byte) []byte {
	r, err := gzip.NewReader(base64.NewDecoder(base64.RawStdEncoding, bytes.NewReader(encoded)))
	if err != nil {
		return nil
	}
	out, _ := io.ReadAll(io.LimitReader(r, 1<<24))
	return out
}

// forms returns the forms in which a text may have a secret: plain, and as part of a text in
// base64, at each of the three possible offsets.
func forms(secret string) []string {
	out := []string{secret}
	for shift := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + secret))
		from, to := 0, len(encoded)-2
		if shift > 0 {
			from = shift + 1
		}
		out = append(out, encoded[from:to])
	}
	return out
}
