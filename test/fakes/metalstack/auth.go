package metalstack

import (
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// lifetime is the time for which the metal-api accepts a signature.
const lifetime = 15 * time.Second

// issuer and audience of tokens.
const issuer, audience = "https://dex.example.org/dex", "metal-api"

// Groups of users.
const (
	GroupView  = "kaas-view"
	GroupEdit  = "kaas-edit"
	GroupAdmin = "kaas-admin"
)

// rights of a user.
var rights = map[string][]string{
	"Metal-View":  {GroupView},
	"Metal-Edit":  {GroupView, GroupEdit},
	"Metal-Admin": {GroupView, GroupEdit, GroupAdmin},
}

// A user is the caller.
type user struct {
	name, email string
	groups      []string
}

func (u user) has(group string) bool { return slices.Contains(u.groups, group) }

// claims of a token.
type claims struct {
	Issuer   string   `json:"iss"`
	Audience string   `json:"aud"`
	Subject  string   `json:"sub"`
	Expires  int64    `json:"exp"`
	IssuedAt int64    `json:"iat"`
	Email    string   `json:"email"`
	Groups   []string `json:"groups"`
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// Token issues a token of OpenID Connect for a user.
func (a *API) Token(subject string, validFor time.Duration, groups ...string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	text := encode(map[string]string{"alg": "EdDSA", "typ": "JWT", "kid": a.keyID}) + "." + encode(claims{
		Issuer: issuer, Audience: audience, Subject: subject, Email: subject + "@example.org", Groups: groups,
		IssuedAt: now.Unix(), Expires: now.Add(validFor).Unix(),
	})
	signature, err := a.signing.Sign(nil, []byte(text), crypto.Hash(0))
	if err != nil {
		panic(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// subjectOf returns the user that a request names, for faults, without any check.
func subjectOf(r *http.Request) string {
	scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	parts := strings.Split(rest, ".")
	if scheme != "Bearer" || len(parts) != 3 {
		return scheme
	}
	b, _ := base64.RawURLEncoding.DecodeString(parts[1])
	var c claims
	_ = json.Unmarshal(b, &c)
	return c.Subject
}

// authenticate returns the user of a request. A request without a known kind of authentication is one of a guest.
func (a *API) authenticate(r *http.Request, now time.Time) (user, *failure) {
	scheme, rest, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok {
		return user{}, nil
	}
	if scheme == "Bearer" {
		return a.verifyToken(rest, now)
	}
	key, known := a.hmacs[scheme]
	if !known {
		return user{}, nil
	}
	text := r.Header.Get("X-Date")
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return user{}, fail(http.StatusForbidden, "unknown timestamp %q in %q header, use RFC3339: %v", text, "X-Date", err)
	}
	if now.Sub(at) > lifetime {
		return user{}, fail(http.StatusForbidden, "the timestamp in your header is too old: %q, please check if you have time synchronization activated", text)
	}
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(at.UTC().Format(time.RFC3339) + r.Method + r.Header.Get("X-Data-Salt")))
	if !hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), []byte(strings.TrimSpace(rest))) {
		return user{}, fail(http.StatusForbidden, "Wrong HMAC found")
	}
	return user{name: scheme, email: strings.ToLower(scheme) + "@metal-stack.io", groups: rights[scheme]}, nil
}

// verifyToken verifies the signature and the claims of a token.
func (a *API) verifyToken(token string, now time.Time) (user, *failure) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return user{}, fail(http.StatusForbidden, "token is malformed: token contains an invalid number of segments")
	}
	var header struct{ Alg, Kid string }
	var c claims
	for i, to := range []any{&header, &c} {
		b, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(b, to) != nil {
			return user{}, fail(http.StatusForbidden, "token is malformed: could not JSON decode")
		}
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	switch {
	case header.Alg != "EdDSA":
		return user{}, fail(http.StatusForbidden, "token is unverifiable: error while executing keyfunc: invalid token")
	case header.Kid != a.keyID:
		return user{}, fail(http.StatusForbidden, "token is unverifiable: error while executing keyfunc: key %q not found", header.Kid)
	case err != nil || !ed25519.Verify(a.signing.Public().(ed25519.PublicKey), []byte(parts[0]+"."+parts[1]), signature):
		return user{}, fail(http.StatusForbidden, "token signature is invalid: ed25519: verification error")
	case c.Issuer != issuer || c.Audience != audience:
		return user{}, fail(http.StatusForbidden, "token has invalid claims: token has invalid issuer")
	case now.Unix() >= c.Expires:
		return user{}, fail(http.StatusForbidden, "token has invalid claims: token is expired")
	}
	groups := slices.Clone(c.Groups)
	if slices.Contains(groups, GroupEdit) {
		groups = append(groups, GroupView)
	}
	return user{name: c.Subject, email: c.Email, groups: groups}, nil
}

// require returns an error if the user has none of the groups.
func require(u user, group string) *failure {
	if u.has(group) {
		return nil
	}
	return fail(http.StatusForbidden, "you are not member in one of %s", fmt.Sprint([]string{group}))
}
