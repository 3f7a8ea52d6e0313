package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/drover-dev/drover/cluster/internal/layout"
)

// ErrNotRunning means that no supervisor runs for the directory.
var ErrNotRunning = errors.New("the control plane is not running")

// A Client sends requests to the supervisor of a directory.
type Client struct {
	dir  layout.Dir
	http *http.Client
}

// NewClient returns a client. It does not connect yet.
func NewClient(dir layout.Dir) *Client {
	return &Client{dir: dir, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", dir.Socket())
		},
	}}}
}

// Running reports whether a supervisor holds the directory's lock.
func (c *Client) Running() bool {
	f, err := os.Open(c.dir.Lock())
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}

// Status returns the addresses and files of the instance.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	body, err := c.do(ctx, http.MethodGet, "/status")
	if err != nil {
		return s, err
	}
	defer body.Close()
	return s, json.NewDecoder(body).Decode(&s)
}

// Follow calls f for every event of the start, until the start has ended.
func (c *Client) Follow(ctx context.Context, f func(Event)) error {
	body, err := c.do(ctx, http.MethodGet, "/events")
	if err != nil {
		return err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return err
		}
		f(e)
	}
	return lines.Err()
}

// Operate starts, stops or restarts a component, and returns when that is complete.
func (c *Client) Operate(ctx context.Context, verb, component string) error {
	return c.post(ctx, "/components/"+component+"/"+verb)
}

// Down requests that the supervisor stops all components. It returns at once.
func (c *Client) Down(ctx context.Context) error { return c.post(ctx, "/down") }

func (c *Client) post(ctx context.Context, path string) error {
	body, err := c.do(ctx, http.MethodPost, path)
	if err != nil {
		return err
	}
	return body.Close()
}

func (c *Client) do(ctx context.Context, method, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNotRunning
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s", strings.TrimSpace(string(b)))
	}
	return resp.Body, nil
}
