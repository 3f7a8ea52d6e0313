package real

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/drover-dev/drover/test/fakes"
)

// A gateway passes calls on to the sockets of the services, by the first part of their path.
type gateway struct {
	sockets string
	client  *http.Client

	// after is called with the answer to a call.
	after func(call, id string, body []byte, status int)
}

func newGateway(sockets string) *gateway {
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(sockets, host))
	}
	return &gateway{
		sockets: sockets,
		client: &http.Client{
			Transport:     &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 16},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// IDs of Nova and Neutron are UUIDs with hyphens. Keystone's, which have none, are of no interest.
var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// ServeHTTP passes a call on.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	id := ""
	call := fakes.CallOf(r.Method, r.URL.Path, func(part string) bool {
		if uuid.MatchString(part) {
			id = part
			return true
		}
		return false
	})
	status, header, answer, err := g.pass(r, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	if g.after != nil {
		g.after(call, id, body, status)
	}
	for k, v := range header {
		w.Header()[k] = v
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

// pass passes a call on to its service, which returns links for the address of the gateway.
func (g *gateway) pass(r *http.Request, body []byte) (int, http.Header, []byte, error) {
	service, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	url := "http://" + service + "/" + path
	if r.URL.RawQuery != "" {
		url += "?" + r.URL.RawQuery
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	out.Header = r.Header.Clone()
	out.Header.Del("Connection")
	out.Header.Set("X-Forwarded-Proto", "http")
	out.Header.Set("X-Forwarded-Host", r.Host)
	out.Header.Set("X-Forwarded-Prefix", "/"+service)
	resp, err := g.client.Do(out)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, nil, err
	}
	header := resp.Header.Clone()
	for _, k := range []string{"Connection", "Transfer-Encoding", "Content-Encoding"} {
		header.Del(k)
	}
	if resp.StatusCode != http.StatusNoContent {
		header.Set("Content-Length", strconv.Itoa(len(answer)))
	}
	return resp.StatusCode, header, answer, nil
}
