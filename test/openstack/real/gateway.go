package real

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/drover-dev/drover/test/fakes"
)

// A gateway passes calls on to the sockets of the services, by the first part of their path. It counts them, and makes them
// fail in the ways in which the OpenStack itself cannot be made to fail: a rate limit, and a response that is lost.
type gateway struct {
	fakes.Face
	sockets string
	client  *http.Client

	mu sync.Mutex
	// projects are the names of projects by the tokens that they got.
	projects map[string]string
	// before is called with a call that is about to be passed on, and after with its response.
	before func(call, id string)
	after  func(call, id string, body []byte, r response)
}

// A response of a service.
type response struct {
	status int
	header http.Header
	body   []byte
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
		sockets: sockets, projects: map[string]string{},
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
	body := fakes.BodyOf(r)
	id := ""
	call := fakes.CallOf(r.Method, r.URL.Path, func(part string) bool {
		if uuid.MatchString(part) {
			id = part
			return true
		}
		return false
	})
	refuse := func(f *fakes.Fault) {
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		fakes.AnswerJSON(w, f.Status, map[string]any{f.Code: map[string]any{"code": f.Status, "message": f.Message}})
	}
	g.Serve(call, g.projectOf(r.Header.Get("X-Auth-Token")), body, refuse, func() func() {
		if g.before != nil {
			g.before(call, id)
		}
		resp, err := g.pass(r, body)
		if err != nil {
			return func() { http.Error(w, err.Error(), http.StatusBadGateway) }
		}
		g.noteProject(resp)
		if g.after != nil {
			g.after(call, id, body, resp)
		}
		return func() {
			maps.Copy(w.Header(), resp.header)
			w.WriteHeader(resp.status)
			_, _ = w.Write(resp.body)
		}
	})
}

// pass passes a call on to its service, which returns links for the address of the gateway. The service gets the whole call
// even if the client is gone, as from a proxy of an operator.
func (g *gateway) pass(r *http.Request, body []byte) (response, error) {
	service, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	url := "http://" + service + "/" + path
	if r.URL.RawQuery != "" {
		url += "?" + r.URL.RawQuery
	}
	out, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, url, bytes.NewReader(body))
	if err != nil {
		return response{}, err
	}
	out.Header = r.Header.Clone()
	out.Header.Del("Connection")
	out.Header.Set("X-Forwarded-Proto", "http")
	out.Header.Set("X-Forwarded-Host", r.Host)
	out.Header.Set("X-Forwarded-Prefix", "/"+service)
	resp, err := g.client.Do(out)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return response{}, err
	}
	header := resp.Header.Clone()
	for _, k := range []string{"Connection", "Transfer-Encoding", "Content-Encoding"} {
		header.Del(k)
	}
	if resp.StatusCode != http.StatusNoContent {
		header.Set("Content-Length", strconv.Itoa(len(answer)))
	}
	return response{resp.StatusCode, header, answer}, nil
}

// projectOf returns the name of the project that got a token.
func (g *gateway) projectOf(token string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.projects[token]
}

// noteProject records the project of a token.
func (g *gateway) noteProject(r response) {
	token := r.header.Get("X-Subject-Token")
	if token == "" {
		return
	}
	var t struct {
		Token struct {
			Project struct {
				Name string `json:"name"`
			} `json:"project"`
		} `json:"token"`
	}
	if json.Unmarshal(r.body, &t) != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.projects[token] = t.Token.Project.Name
}
