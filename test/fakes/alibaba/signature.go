package alibaba

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	algorithm = "ACS3-HMAC-SHA256"
	// validFor is the maximum age of a request, and the time for which a nonce is known.
	validFor = 15 * time.Minute
)

var authorization = regexp.MustCompile(`^` + algorithm + ` Credential=([^,]+),SignedHeaders=([^,]+),Signature=([0-9a-f]{64})$`)

// mustBeSigned are the headers that each signature must cover.
var mustBeSigned = []string{"host", "x-acs-action", "x-acs-content-sha256", "x-acs-date", "x-acs-signature-nonce", "x-acs-version"}

// accessKeyOf returns the ID of the AccessKey in a request, or "" if there is none.
func accessKeyOf(r *http.Request) string {
	if m := authorization.FindStringSubmatch(r.Header.Get("Authorization")); m != nil {
		return m[1]
	}
	return ""
}

// authenticate returns the key that signed the request.
func (c *Cloud) authenticate(r *http.Request, body []byte, now time.Time) (*key, *failure) {
	m := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil {
		return nil, fail(http.StatusBadRequest, "MissingAuthorization", "The Authorization header is missing or malformed.")
	}
	k := c.keys[m[1]]
	if k == nil {
		return nil, fail(http.StatusNotFound, "InvalidAccessKeyId.NotFound", "Specified access key is not found.")
	}
	signed := strings.Split(m[2], ";")
	canonical, ok := canonicalRequest(r, signed, body)
	toSign := algorithm + "\n" + hash([]byte(canonical))
	if !ok || !hmac.Equal([]byte(sign(k.Secret, toSign)), []byte(m[3])) {
		return nil, fail(http.StatusBadRequest, "SignatureDoesNotMatch", "Specified signature is not matched with our calculation. server string to sign is:%s", toSign)
	}
	at, err := time.Parse("2006-01-02T15:04:05Z", r.Header.Get("x-acs-date"))
	if err != nil || now.Sub(at).Abs() > validFor {
		return nil, fail(http.StatusBadRequest, "InvalidTimeStamp.Expired", "Specified time stamp or date value is expired.")
	}
	nonce := r.Header.Get("x-acs-signature-nonce")
	if used, ok := c.nonces[nonce]; nonce == "" || ok && now.Sub(used) < validFor {
		return nil, fail(http.StatusBadRequest, "SignatureNonceUsed", "Specified signature nonce was used already.")
	}
	c.nonces[nonce] = now
	token := r.Header.Get("x-acs-security-token")
	switch {
	case k.Token != "" && token == "":
		return nil, fail(http.StatusBadRequest, "MissingSecurityToken", "SecurityToken is mandatory for this action.")
	case k.Token != token:
		return nil, fail(http.StatusBadRequest, "InvalidSecurityToken.MismatchWithAccessKey", "Specified SecurityToken is not matched with the AccessKey.")
	case !k.expires.IsZero() && now.After(k.expires):
		return nil, fail(http.StatusBadRequest, "InvalidSecurityToken.Expired", "Specified SecurityToken is expired.")
	}
	return k, nil
}

// canonicalRequest returns the text whose hash is signed. The second value is false if the signature does not
// cover a required header, or if the header with the hash of the body is wrong.
func canonicalRequest(r *http.Request, signed []string, body []byte) (string, bool) {
	payload := hash(body)
	ok := r.Header.Get("x-acs-content-sha256") == payload
	for _, h := range mustBeSigned {
		ok = ok && slices.Contains(signed, h)
	}
	for h := range r.Header {
		lower := strings.ToLower(h)
		if strings.HasPrefix(lower, "x-acs-") || lower == "content-type" {
			ok = ok && slices.Contains(signed, lower)
		}
	}
	var headers strings.Builder
	for _, h := range signed {
		value := r.Header.Get(h)
		if h == "host" {
			value = r.Host
		}
		headers.WriteString(h + ":" + strings.TrimSpace(value) + "\n")
	}
	var query []string
	for k, values := range r.URL.Query() {
		for _, v := range values {
			query = append(query, escape(k)+"="+escape(v))
		}
	}
	slices.Sort(query)
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	return strings.Join([]string{r.Method, path, strings.Join(query, "&"), headers.String(), strings.Join(signed, ";"), payload}, "\n"), ok && slices.IsSorted(signed)
}

// escape escapes a text as RFC 3986 does it.
func escape(s string) string {
	return strings.NewReplacer("+", "%20", "*", "%2A", "%7E", "~").Replace(url.QueryEscape(s))
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func sign(secret, text string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(text))
	return hex.EncodeToString(m.Sum(nil))
}
