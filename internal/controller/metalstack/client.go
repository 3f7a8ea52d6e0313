package metalstack

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/metalstack/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

const (
	// callTimeout is the timeout of a call.
	callTimeout = 20 * time.Second
	// maxAnswer is the maximum size of a response in bytes. The list of machines has all their hardware, and has no
	// pages.
	maxAnswer = 256 << 20
	// maxMessage is the maximum length of the message of an error.
	maxMessage = 512
)

// authTypes are the users of the metal-api that have an HMAC key.
var authTypes = []string{"Metal-View", "Metal-Edit", "Metal-Admin"}

// defaultAuthType is the user with the least rights that can allocate machines.
const defaultAuthType = "Metal-Edit"

// credentials are the content of a configuration's Secret: an HMAC key, or a token of OpenID Connect.
type credentials struct {
	HMAC         string `json:"hmac,omitempty"`
	HMACAuthType string `json:"hmacAuthType,omitempty"`
	Token        string `json:"token,omitempty"`
}

func (c credentials) validate() error {
	switch {
	case c.HMAC == "" && c.Token == "":
		return errors.New("credentials: hmac or token: one of them must not be empty")
	case c.HMAC != "" && c.Token != "":
		return errors.New("credentials: hmac and token: only one of them may be set")
	case c.HMACAuthType != "" && c.Token != "":
		return errors.New("credentials: hmacAuthType: is not used with token")
	case c.HMACAuthType != "" && !slices.Contains(authTypes, c.HMACAuthType):
		return fmt.Errorf("credentials: hmacAuthType: invalid value %q: must be one of %s", c.HMACAuthType, strings.Join(authTypes, ", "))
	case strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("credentials: token: must not contain spaces, line breaks or special characters")
	}
	return nil
}

// A caller makes calls of a metal-api.
type caller struct {
	api native.API
}

// newCaller returns a caller. It makes no call.
func newCaller(spec v1alpha1.ProviderConfigSpec, c credentials, next http.RoundTripper, now func() time.Time) (*caller, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	u, err := url.Parse(spec.Server)
	if err != nil {
		return nil, fmt.Errorf("spec.server: %w", err)
	}
	if next == nil {
		if next, err = native.ServerTransport(spec.CABundle, ptr.Deref(spec.InsecureSkipVerify, false), callTimeout); err != nil {
			return nil, err
		}
	}
	return &caller{native.API{
		Base: u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/"),
		// The calls are signed when the limiter sends them: the metal-api refuses a signature that is older than 15
		// seconds.
		HTTP:        native.HTTPClient(&signer{credentials: c, now: now, next: next}, callTimeout, now),
		MaxResponse: maxAnswer,
		ErrorOf:     func(status int, body []byte) error { return errorOf(status, body) },
	}}, nil
}

// A signer authenticates requests.
type signer struct {
	credentials credentials
	now         func() time.Time
	next        http.RoundTripper
}

// RoundTrip authenticates and sends a request.
func (s *signer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if s.credentials.Token != "" {
		req.Header.Set("Authorization", "Bearer "+s.credentials.Token)
		return s.next.RoundTrip(req)
	}
	sign(req, s.credentials, s.now(), rand.Text())
	return s.next.RoundTrip(req)
}

// sign signs the time, the method and a salt with the HMAC key. The signature has neither the path nor the body.
func sign(req *http.Request, c credentials, now time.Time, salt string) {
	at := now.UTC().Format(time.RFC3339)
	mac := hmac.New(sha256.New, []byte(c.HMAC))
	for _, part := range []string{at, req.Method, salt} {
		_, _ = io.WriteString(mac, part)
	}
	user := c.HMACAuthType
	if user == "" {
		user = defaultAuthType
	}
	req.Header.Set("X-Date", at)
	req.Header.Set("X-Data-Salt", salt)
	req.Header.Set("Authorization", user+" "+hex.EncodeToString(mac.Sum(nil)))
}

// call makes a call, and decodes the response into out. An error response is an apiError.
func (c *caller) call(ctx context.Context, method, path string, in, out any) error {
	req, err := c.api.NewJSONRequest(ctx, method, path, nil, in)
	if err != nil {
		return err
	}
	b, _, err := c.api.Do(req)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("the response is not valid: %w", err)
	}
	return nil
}

// An apiError is an error response of the metal-api.
type apiError struct {
	Status  int
	Message string
	// Known means that the response is one of the metal-api, and not of a proxy.
	Known bool
}

func (e *apiError) Error() string {
	text := e.Message
	if text == "" {
		text = http.StatusText(e.Status)
	}
	return fmt.Sprintf("%s (status %d)", text, e.Status)
}

// errorOf returns the error in a response: an object with the status and the message, or the message as a JSON string.
// A proxy has neither.
func errorOf(status int, body []byte) *apiError {
	out := &apiError{Status: status}
	var answer struct {
		Status  int    `json:"statuscode"`
		Message string `json:"message"`
	}
	var text string
	switch {
	case json.Unmarshal(body, &answer) == nil:
		out.Message, out.Known = answer.Message, answer.Status == status && answer.Message != ""
	case json.Unmarshal(body, &text) == nil:
		out.Message, out.Known = text, text != ""
	}
	if len(out.Message) > maxMessage {
		out.Message = strings.ToValidUTF8(out.Message[:maxMessage], "")
	}
	return out
}

// asAPIError returns the error response in err, or nil if there is none.
func asAPIError(err error) *apiError {
	var e *apiError
	errors.As(err, &e)
	return e
}

// isNotFound reports whether err means that the metal-api has no object with the ID. A status 404 of a proxy proves
// nothing.
func isNotFound(err error) bool {
	e := asAPIError(err)
	return e != nil && e.Known && e.Status == http.StatusNotFound
}
