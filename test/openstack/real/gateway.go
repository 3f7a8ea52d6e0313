package real

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/drover-dev/drover/test/fakes"
)

// An Exchange is a call and its answer.
type Exchange struct {
	// Call is the method and the path with {id} for IDs, as in package fakes.
	Call, Query string
	Request     json.RawMessage
	Status      int
	Header      http.Header
	Answer      json.RawMessage
}

// A gateway passes calls on to the sockets of the services, by the first part of their path.
type gateway struct {
	fakes.Faults
	fakes.Count
	sockets string
	client  *http.Client

	mu sync.Mutex
	// projects are the names of projects by the tokens that they got.
	projects map[string]string
	record   bool
	recorded []Exchange
	// before is called with a call that is about to be passed on, and after with its answer.
	before func(call, id string)
	after  func(call, id string, body []byte, status int)
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
	g.Note(call)
	f := g.Of(call, g.projectOf(r.Header.Get("X-Auth-Token")), body)
	if f != nil && !f.Lost {
		if f.Refused {
			panic(http.ErrAbortHandler)
		}
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		fakes.AnswerJSON(w, f.Status, map[string]any{f.Code: map[string]any{"code": f.Status, "message": f.Message}})
		return
	}
	if g.before != nil {
		g.before(call, id)
	}
	status, header, answer, err := g.pass(r, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	g.note(Exchange{Call: call, Query: r.URL.RawQuery, Request: body, Status: status, Header: header, Answer: answer})
	if g.after != nil {
		g.after(call, id, body, status)
	}
	if f != nil {
		f.Done()
		panic(http.ErrAbortHandler)
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

// projectOf returns the name of the project that got a token.
func (g *gateway) projectOf(token string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.projects[token]
}

// note remembers the projects of tokens, and the exchange if they are recorded.
func (g *gateway) note(e Exchange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if token := e.Header.Get("X-Subject-Token"); token != "" {
		var t struct {
			Token struct {
				Project struct {
					Name string `json:"name"`
				} `json:"project"`
			} `json:"token"`
		}
		if json.Unmarshal(e.Answer, &t) == nil {
			g.projects[token] = t.Token.Project.Name
		}
	}
	if g.record {
		g.recorded = append(g.recorded, e)
	}
}

// Record begins to record the calls through the gateway. The returned function ends that, and returns them.
func (g *gateway) Record() (end func() []Exchange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.record, g.recorded = true, nil
	return func() []Exchange {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.record = false
		return g.recorded
	}
}
