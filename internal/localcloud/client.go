package localcloud

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// DefaultTimeout is the time limit of a call that the client sets on top of the
// context's.
const DefaultTimeout = 30 * time.Second

// maxErrorBody bounds how much is read of a response that is not the API's.
const maxErrorBody = 4 << 10

// Client calls the API. It is safe for concurrent use. It never repeats a call: only the caller knows whether a
// creation may be retried.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
}

// Option changes a Client.
type Option func(*Client)

// WithHTTPClient replaces the HTTP client, for a transport or a timeout of the
// caller's own.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// NewClient makes a client for the API at endpoint, like http://127.0.0.1:8088.
func NewClient(endpoint, token string, opts ...Option) (*Client, error) {
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("endpoint: invalid value %q: must be a URL like http://127.0.0.1:8088", endpoint)
	}
	if strings.TrimSpace(token) == "" {
		return nil, fmt.Errorf("token: must not be empty")
	}
	c := &Client{base: u, token: strings.TrimSpace(token), http: &http.Client{Timeout: DefaultTimeout}}
	for _, o := range opts {
		o(c)
	}
	return c, nil
}

// CreateVM creates a VM and returns it as it was accepted, usually Pending. Two calls create two VMs. An error
// that is not an *Error leaves open whether a VM was created; find it by a tag.
func (c *Client) CreateVM(ctx context.Context, r CreateVMRequest) (*VM, error) {
	return call[VM](ctx, c, http.MethodPost, c.url(nil, "vms"), r)
}

// GetVM returns a VM.
func (c *Client) GetVM(ctx context.Context, id string) (*VM, error) {
	return call[VM](ctx, c, http.MethodGet, c.url(nil, "vms", id), nil)
}

// ListVMs returns the VMs that match, oldest first. It fails if a zone is unreachable.
func (c *Client) ListVMs(ctx context.Context, o ListVMsOptions) ([]VM, error) {
	l, err := c.FindVMs(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(l.Unreachable) > 0 {
		return nil, fmt.Errorf("local cloud: VMs are missing in the list: unreachable: %s", strings.Join(l.Unreachable, ", "))
	}
	return l.Items, nil
}

// FindVMs returns the VMs that match, oldest first, and the zones that were unreachable.
func (c *Client) FindVMs(ctx context.Context, o ListVMsOptions) (*VMList, error) {
	q := url.Values{}
	if o.Name != "" {
		q.Set("name", o.Name)
	}
	for k, v := range o.Tags {
		q.Add("tag", k+"="+v)
	}
	return call[VMList](ctx, c, http.MethodGet, c.url(q, "vms"), nil)
}

// UpdateVM replaces the tags of a VM.
func (c *Client) UpdateVM(ctx context.Context, id string, r UpdateVMRequest) (*VM, error) {
	return call[VM](ctx, c, http.MethodPatch, c.url(nil, "vms", id), r)
}

// DeleteVM starts the deletion of a VM. It is complete when GetVM returns CodeNotFound. Deleting a VM that is
// Terminating is no error.
func (c *Client) DeleteVM(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, c.url(nil, "vms", id), nil, nil)
}

// RebootVM cuts the power of a VM that runs, and boots it again. Its disk is kept.
func (c *Client) RebootVM(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodPost, c.url(nil, "vms", id, "reboot"), nil, nil)
}

// Console returns the console output of the VM.
func (c *Client) Console(ctx context.Context, id string) (string, error) {
	var b bytes.Buffer
	err := c.do(ctx, http.MethodGet, c.url(nil, "vms", id, "console"), nil, func(r io.Reader) error {
		_, err := b.ReadFrom(r)
		return err
	})
	return b.String(), err
}

// History returns the changes of all VMs that ever existed, oldest first.
func (c *Client) History(ctx context.Context) ([]Change, error) {
	h, err := call[History](ctx, c, http.MethodGet, c.url(nil, "history"), nil)
	if err != nil {
		return nil, err
	}
	return h.Items, nil
}

// ListImages returns the images that a VM can boot.
func (c *Client) ListImages(ctx context.Context) ([]Image, error) {
	l, err := call[ImageList](ctx, c, http.MethodGet, c.url(nil, "images"), nil)
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// GetQuota returns the account's quota.
func (c *Client) GetQuota(ctx context.Context) (*Quota, error) {
	return call[Quota](ctx, c, http.MethodGet, c.url(nil, "quota"), nil)
}

// SetQuota replaces the account's quota. Existing VMs stay.
func (c *Client) SetQuota(ctx context.Context, q Quota) (*Quota, error) {
	return call[Quota](ctx, c, http.MethodPut, c.url(nil, "quota"), q)
}

// GetSettings returns the cloud's settings.
func (c *Client) GetSettings(ctx context.Context) (*Settings, error) {
	return call[Settings](ctx, c, http.MethodGet, c.url(nil, "settings"), nil)
}

// SetSettings replaces the cloud's settings.
func (c *Client) SetSettings(ctx context.Context, s Settings) (*Settings, error) {
	return call[Settings](ctx, c, http.MethodPut, c.url(nil, "settings"), s)
}

// CreateFault injects a fault and returns it with its ID.
func (c *Client) CreateFault(ctx context.Context, f Fault) (*Fault, error) {
	return call[Fault](ctx, c, http.MethodPost, c.url(nil, "faults"), f)
}

// ListFaults returns the faults that are still in effect.
func (c *Client) ListFaults(ctx context.Context) ([]Fault, error) {
	l, err := call[FaultList](ctx, c, http.MethodGet, c.url(nil, "faults"), nil)
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// DeleteFault removes a fault. Its effects so far stay.
func (c *Client) DeleteFault(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, c.url(nil, "faults", id), nil, nil)
}

func (c *Client) url(q url.Values, path ...string) string {
	escaped := make([]string, 0, len(path)+1)
	for _, p := range append([]string{"v1"}, path...) {
		escaped = append(escaped, url.PathEscape(p))
	}
	u := strings.TrimSuffix(c.base.String(), "/") + "/" + strings.Join(escaped, "/")
	if len(q) > 0 {
		u += "?" + q.Encode()
	}
	return u
}

func call[T any](ctx context.Context, c *Client, method, url string, body any) (*T, error) {
	out := new(T)
	err := c.do(ctx, method, url, body, func(r io.Reader) error { return json.NewDecoder(r).Decode(out) })
	if err != nil {
		return nil, err
	}
	return out, nil
}

// do makes one call, and passes the body of a successful response to read.
func (c *Client) do(ctx context.Context, method, url string, body any, read func(io.Reader) error) error {
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		payload = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, payload)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("call local cloud: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return readError(resp)
	}
	if read == nil {
		return nil
	}
	if err := read(resp.Body); err != nil {
		return fmt.Errorf("read answer of local cloud: %w", err)
	}
	return nil
}

func readError(resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	e := &Error{}
	if err := json.Unmarshal(b, e); err != nil || e.Code == "" {
		e = &Error{Message: strings.TrimSpace(string(b))}
	}
	e.StatusCode = resp.StatusCode
	// The API only writes seconds, never a date, which HTTP also allows.
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}
