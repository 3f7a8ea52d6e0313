// Package probe checks whether processes are ready, as the kubelet does.
package probe

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// timeout is short, because a process that starts may accept a connection long before it answers.
const timeout = 2 * time.Second

// HTTP returns an error unless url answers with status 200.
func HTTP(ctx context.Context, c *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}

// TCP returns an error unless a process listens at address.
func TCP(ctx context.Context, address string) error {
	d := net.Dialer{Timeout: timeout}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
