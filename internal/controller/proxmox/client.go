package proxmox

import (
	"context"
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
	"github.com/drover-dev/drover/internal/cloud/trust"
	"github.com/drover-dev/drover/internal/ratelimit"
)

const (
	// callTimeout is the timeout of a call. The longest call is an upload.
	callTimeout = 20 * time.Second
	// defaultPort is the port of pveproxy.
	defaultPort = "8006"
	// maxAnswer is the maximum size of an error response in bytes.
	maxAnswer = 64 << 10
)

// credentials are the content of a configuration's Secret.
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
	t, err := trust.Transport(spec.CABundle, callTimeout)
	if err != nil {
		return nil, err
	}
	t.TLSClientConfig.InsecureSkipVerify = ptr.Deref(spec.InsecureSkipVerify, false)
	return t, nil
}

// silent discards the log of the library, which has the bodies of requests and thereby credentials.
type silent struct{}

func (silent) Debugf(string, ...any) {}
func (silent) Errorf(string, ...any) {}
func (silent) Infof(string, ...any)  {}
func (silent) Warnf(string, ...any)  {}

// An apiError is an error response of the API.
type apiError struct {
	Status int
	// Text of the status line, in which Proxmox VE has its message.
	Text string
	// Parameters that the API refused, with the reason.
	Parameters map[string]string
}

func (e *apiError) Error() string {
	s := fmt.Sprintf("%s (status %d)", e.Text, e.Status)
	if len(e.Parameters) > 0 {
		s = fmt.Sprintf("%s (status %d): %s", e.Text, e.Status, pairs(e.Parameters))
	}
	return s
}

// statusErrors returns each error response as an apiError. The library treats some statuses as a success,
// such as 595 of an unreachable node, and drops the text of other errors.
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
		// HTTP/2 has no text in the status line: a proxy loses it.
		if m := strings.TrimSpace(body.Message); e.Text == "" || e.Text == http.StatusText(resp.StatusCode) && m != "" {
			e.Text = m
		}
	}
	return nil, e
}

// asAPIError returns the error response in err, or nil if there is none.
func asAPIError(err error) *apiError {
	var e *apiError
	errors.As(err, &e)
	return e
}

// A taskStatus is the status of a task.
type taskStatus struct {
	Status     string `json:"status"`
	ExitStatus string `json:"exitstatus"`
	Type       string `json:"type"`
}

// failure returns the error of a task, or "" if it runs or succeeded. Success includes warnings.
func (s taskStatus) failure() string {
	if s.Status != "stopped" || s.ExitStatus == "OK" || strings.HasPrefix(s.ExitStatus, "WARNINGS") {
		return ""
	}
	return s.ExitStatus
}

// lookAtTask returns the status of the task with the UPID. The second value is false if the node no longer
// has the task.
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
