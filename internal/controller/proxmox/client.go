package proxmox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	pve "github.com/luthermonson/go-proxmox"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/proxmox/v1alpha1"
	"github.com/drover-dev/drover/internal/ratelimit"
)

const (
	// callTimeout ends a call that is not answered. An upload takes longest.
	callTimeout = 20 * time.Second
	// defaultPort of pveproxy.
	defaultPort = "8006"
	// maxAnswer is as much as is read of an error.
	maxAnswer = 64 << 10
)

// credentials are what the Secret of a configuration holds.
type credentials struct {
	TokenID string `json:"tokenID"`
	Secret  string `json:"secret"`
}

func (c credentials) validate() error {
	user, token, ok := strings.Cut(c.TokenID, "!")
	if !ok || !strings.Contains(user, "@") || token == "" {
		return errors.New(`credentials: tokenID: must be like "drover@pve!drover"`)
	}
	if c.Secret == "" {
		return errors.New("credentials: secret: must not be empty")
	}
	return nil
}

// newClient returns a client of the server. It makes no call.
func newClient(spec v1alpha1.ProviderConfigSpec, c credentials, next http.RoundTripper) (*pve.Client, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	u, err := url.Parse(spec.Server)
	if err != nil {
		return nil, fmt.Errorf("spec.server: %w", err)
	}
	if u.Port() == "" {
		u.Host += ":" + defaultPort
	}
	if next == nil {
		if next, err = transport(spec); err != nil {
			return nil, err
		}
	}
	return pve.NewClient(u.Scheme+"://"+u.Host+"/api2/json",
		pve.WithAPIToken(c.TokenID, c.Secret),
		pve.WithUserAgent("drover"),
		pve.WithLogger(silent{}),
		pve.WithHTTPClient(&http.Client{Timeout: callTimeout, Transport: statusErrors{ratelimit.New(next)}}),
	), nil
}

func transport(spec v1alpha1.ProviderConfigSpec) (http.RoundTripper, error) {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default transport is replaced")
	}
	t = t.Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: ptr.Deref(spec.InsecureSkipVerify, false)} //nolint:gosec // A user asks for it.
	if len(spec.CABundle) > 0 {
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(spec.CABundle) {
			return nil, errors.New("spec.caBundle: has no PEM certificate")
		}
	}
	return t, nil
}

// silent logs nothing: the library logs the bodies of requests, which have credentials.
type silent struct{}

func (silent) Debugf(string, ...any) {}
func (silent) Errorf(string, ...any) {}
func (silent) Infof(string, ...any)  {}
func (silent) Warnf(string, ...any)  {}

// An apiError is an answer of the API that is no success.
type apiError struct {
	Status int
	// Text of the status line, where Proxmox VE puts its message.
	Text string
	// Parameters that were refused, with the reason.
	Parameters map[string]string
}

func (e *apiError) Error() string {
	s := fmt.Sprintf("%s (status %d)", e.Text, e.Status)
	if len(e.Parameters) > 0 {
		s = fmt.Sprintf("%s (status %d): %s", e.Text, e.Status, pairs(e.Parameters))
	}
	return s
}

// statusErrors returns each answer that is no success as an apiError. The library takes some statuses,
// such as 595 of a node that cannot be reached, for a success, and drops the text of others.
type statusErrors struct{ next http.RoundTripper }

func (t statusErrors) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp.StatusCode < 300 {
		return resp, err
	}
	defer func() { _ = resp.Body.Close() }()
	e := &apiError{Status: resp.StatusCode, Text: strings.TrimSpace(strings.TrimPrefix(resp.Status, fmt.Sprint(resp.StatusCode)))}
	if e.Text == "" {
		e.Text = http.StatusText(resp.StatusCode)
	}
	var body struct {
		Message string            `json:"message"`
		Errors  map[string]string `json:"errors"`
	}
	if b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err == nil && json.Unmarshal(b, &body) == nil {
		e.Parameters = body.Errors
		// HTTP/2 has no text in its status line, so a proxy before the server loses it.
		if m := strings.TrimSpace(body.Message); e.Text == "" || e.Text == http.StatusText(resp.StatusCode) && m != "" {
			e.Text = m
		}
	}
	return nil, e
}

// asAPIError returns the answer that err is of, nil if it is of none.
func asAPIError(err error) *apiError {
	var e *apiError
	errors.As(err, &e)
	return e
}

// A taskStatus is how far a task is.
type taskStatus struct {
	Status     string `json:"status"`
	ExitStatus string `json:"exitstatus"`
	Type       string `json:"type"`
}

// failure of the task, "" if it runs or succeeded. A task that succeeds with warnings ends so.
func (s taskStatus) failure() string {
	if s.Status != "stopped" || s.ExitStatus == "OK" || strings.HasPrefix(s.ExitStatus, "WARNINGS") {
		return ""
	}
	return s.ExitStatus
}

// lookAtTask by its UPID. The second value is false if the node does not know it any more.
func (a *account) lookAtTask(ctx context.Context, upid string) (taskStatus, bool, error) {
	var s taskStatus
	parts := strings.Split(upid, ":")
	if len(parts) < 8 {
		return s, false, nil
	}
	err := a.client.Get(ctx, fmt.Sprintf("/nodes/%s/tasks/%s/status", parts[1], url.PathEscape(upid)), &s)
	if e := asAPIError(err); e != nil && e.Status == http.StatusInternalServerError && strings.Contains(e.Text, "No such file or directory") {
		return s, false, nil
	}
	if err != nil {
		return s, false, classify("cannot read a task of the VM", err)
	}
	s.Type = parts[5]
	return s, true, nil
}
