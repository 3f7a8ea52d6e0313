package native

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
)

// maxErrorResponse is the maximum size of an error response in bytes.
const maxErrorResponse = 64 << 10

// An API is the HTTP API of a server that a configuration names.
type API struct {
	// Base is the beginning of all URLs, without a slash at the end.
	Base string
	HTTP *http.Client
	// MaxResponse is the maximum size of a response in bytes. The rest of a longer one is ignored.
	MaxResponse int64
	// ErrorOf returns the error of a response whose status is not 2xx, from at most 64 KiB of its body.
	ErrorOf func(status int, body []byte) error
}

// NewRequest returns a request for a path, with a query and a body unless they are nil.
func (a API) NewRequest(ctx context.Context, method, path string, query url.Values, body []byte) (*http.Request, error) {
	target := a.Base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "drover")
	return req, nil
}

// NewJSONRequest returns a request for a path whose body and response are JSON. It has no body if in is nil.
func (a API) NewJSONRequest(ctx context.Context, method, path string, query url.Values, in any) (*http.Request, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	req, err := a.NewRequest(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// Do sends a request, and returns the body and the headers of its response.
func (a API) Do(req *http.Request) ([]byte, http.Header, error) {
	resp, err := a.HTTP.Do(req) //nolint:gosec // A user who may write configurations chooses the server.
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorResponse))
		return nil, nil, a.ErrorOf(resp.StatusCode, b)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, a.MaxResponse))
	return b, resp.Header, err
}
