package openstack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/drover-dev/drover/test/fakes"
)

// A failure is an error of an API: kind is the key of its body. Neutron has the kind of the error in the
// body, and no status.
type failure struct {
	status        int
	kind, message string
	kindOfError   string
}

func fail(status int, kind, format string, args ...any) *failure {
	return &failure{status: status, kind: kind, message: fmt.Sprintf(format, args...)}
}

var unauthorized = fail(http.StatusUnauthorized, "error", "The request you have made requires authentication.")

// A call is one request of a project.
type call struct {
	*Cloud
	project *project
	now     time.Time
	query   url.Values
	body    []byte
	id      string
	header  http.Header
	// after is called once the state is unlocked.
	after []func()
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// ServeHTTP answers a call of one of the APIs.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	in := &call{Cloud: c, query: r.URL.Query(), header: w.Header()}
	name := fakes.CallOf(r.Method, r.URL.Path, func(part string) bool {
		if uuid.MatchString(part) {
			in.id = part
			return true
		}
		return false
	})
	var err error
	if in.body, err = io.ReadAll(r.Body); err != nil {
		return
	}
	c.Note(name)
	c.mu.Lock()
	t := c.tokens[r.Header.Get("X-Auth-Token")]
	c.mu.Unlock()
	f := c.Of(name, t.project, in.body)
	switch {
	case f != nil && f.Refused:
		panic(http.ErrAbortHandler)
	case f != nil && !f.Lost:
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		// Of Neutron it is like NeutronError/OverQuota.
		key, kind, _ := strings.Cut(f.Code, "/")
		problem := fail(f.Status, key, "%s", f.Message)
		problem.kindOfError = kind
		answerFailure(w, problem)
		return
	}
	if name == "POST /compute/v2.1/servers" {
		time.Sleep(c.opts.Accept)
	}
	status, answer, problem := in.serve(name, t)
	switch {
	case f != nil:
		f.Done()
		panic(http.ErrAbortHandler)
	case problem != nil:
		answerFailure(w, problem)
	default:
		fakes.AnswerJSON(w, status, answer)
	}
}

func (c *call) serve(name string, t token) (int, any, *failure) {
	c.mu.Lock()
	c.now = time.Now()
	status, answer, problem := c.route(name, t)
	c.mu.Unlock()
	for _, do := range c.after {
		do()
	}
	return status, answer, problem
}

func (c *call) route(name string, t token) (int, any, *failure) {
	if name == "POST /identity/v3/auth/tokens" {
		return c.authenticate()
	}
	if c.project = c.projects[t.project]; c.project == nil || !t.ends.IsZero() && c.now.After(t.ends) {
		return 0, nil, unauthorized
	}
	if c.opts.RateLimit > 0 {
		if ok, _, _ := c.project.bucket.Take(c.now, c.opts.RateLimit, c.opts.Refill); !ok {
			c.header.Set("Retry-After", strconv.Itoa(max(1, int(c.opts.Refill/time.Second))))
			return 0, nil, fail(http.StatusTooManyRequests, "overLimit", "This request was rate-limited.")
		}
	}
	c.reap(c.now)
	if status, answer, problem, ok := c.routeNetwork(name); ok {
		return status, answer, problem
	}
	switch name {
	case "GET /compute/v2.1/servers/detail":
		return c.listServers()
	case "POST /compute/v2.1/servers":
		return c.createServer()
	case "GET /compute/v2.1/servers/{id}":
		return c.getServer()
	case "DELETE /compute/v2.1/servers/{id}":
		return c.deleteServer()
	case "POST /compute/v2.1/servers/{id}/action":
		return c.act()
	case "GET /compute/v2.1/servers/{id}/tags":
		return http.StatusOK, map[string]any{"tags": []string{}}, nil
	case "GET /compute/v2.1/flavors/detail":
		return http.StatusOK, map[string]any{"flavors": []any{flavor}}, nil
	case "GET /compute/v2.1/flavors/{id}":
		return known(c.id, FlavorID, "Flavor", map[string]any{"flavor": flavor})
	case "GET /image/v2/images":
		return http.StatusOK, map[string]any{"images": named(c.query, Image, image)}, nil
	case "GET /image/v2/images/{id}":
		return known(c.id, ImageID, "Image", image)
	}
	return 0, nil, fail(http.StatusNotFound, "itemNotFound", "no such endpoint: %s", name)
}

// routeNetwork answers the calls of Neutron.
func (c *call) routeNetwork(name string) (int, any, *failure, bool) {
	answer := map[string]func() (int, any, *failure){
		"GET /network/v2.0/networks":              c.listNetworks,
		"GET /network/v2.0/ports":                 c.listPorts,
		"POST /network/v2.0/ports":                c.createPort,
		"GET /network/v2.0/ports/{id}":            c.getPort,
		"DELETE /network/v2.0/ports/{id}":         c.deletePort,
		"PUT /network/v2.0/ports/{id}/tags":       c.tagPort,
		"GET /network/v2.0/floatingips":           c.listFloatingIPs,
		"POST /network/v2.0/floatingips":          c.createFloatingIP,
		"GET /network/v2.0/floatingips/{id}":      c.getFloatingIP,
		"DELETE /network/v2.0/floatingips/{id}":   c.deleteFloatingIP,
		"PUT /network/v2.0/floatingips/{id}/tags": c.tagFloatingIP,
	}[name]
	if answer == nil {
		return 0, nil, nil, false
	}
	status, body, problem := answer()
	return status, body, problem, true
}

var (
	flavor = map[string]any{"id": FlavorID, "name": Flavor, "vcpus": 4, "ram": 8192, "disk": 40}
	image  = map[string]any{"id": ImageID, "name": Image, "status": "active", "visibility": "public"}
)

func named(q url.Values, name string, one any) []any {
	if want := q.Get("name"); want != "" && want != name {
		return []any{}
	}
	return []any{one}
}

func known(id, want, kind string, one any) (int, any, *failure) {
	if id != want {
		return 0, nil, fail(http.StatusNotFound, "itemNotFound", "%s %s could not be found.", kind, id)
	}
	return http.StatusOK, one, nil
}

func (c *call) authenticate() (int, any, *failure) {
	var r struct {
		Auth struct {
			Identity struct {
				Methods               []string `json:"methods"`
				ApplicationCredential struct {
					ID     string `json:"id"`
					Secret string `json:"secret"`
				} `json:"application_credential"`
			} `json:"identity"`
		} `json:"auth"`
	}
	if json.Unmarshal(c.body, &r) != nil {
		return 0, nil, fail(http.StatusBadRequest, "error", "Expecting to find auth in request body.")
	}
	given := r.Auth.Identity.ApplicationCredential
	project, ok := c.credentials[given.ID]
	if !ok || given.Secret != "secret-of-"+given.ID {
		return 0, nil, unauthorized
	}
	c.last++
	value := fmt.Sprintf("token-%d", c.last)
	t := token{project: project}
	expires := c.now.Add(24 * time.Hour)
	if c.opts.TokenLife > 0 {
		t.ends = c.now.Add(c.opts.TokenLife)
		expires = t.ends
	}
	c.tokens[value] = t
	c.header.Set("X-Subject-Token", value)
	var catalog []any
	for kind, path := range map[string]string{"identity": "/identity", "compute": "/compute/v2.1", "image": "/image", "network": "/network"} {
		catalog = append(catalog, map[string]any{"type": kind, "name": kind, "id": kind, "endpoints": []any{
			map[string]any{"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "url": c.opts.URL + path, "id": kind},
		}})
	}
	return http.StatusCreated, map[string]any{"token": map[string]any{
		"methods": r.Auth.Identity.Methods, "expires_at": expires.UTC().Format("2006-01-02T15:04:05.000000Z"),
		"issued_at": c.now.UTC().Format("2006-01-02T15:04:05.000000Z"),
		"project":   map[string]any{"id": project, "name": project}, "catalog": catalog,
	}}, nil
}

func answerFailure(w http.ResponseWriter, f *failure) {
	if f.kind == "error" {
		// Keystone also has the name of the status.
		fakes.AnswerJSON(w, f.status, map[string]any{f.kind: map[string]any{"code": f.status, "message": f.message, "title": http.StatusText(f.status)}})
		return
	}
	if f.kind == "NeutronError" {
		fakes.AnswerJSON(w, f.status, map[string]any{f.kind: map[string]any{"type": f.kindOfError, "message": f.message, "detail": ""}})
		return
	}
	fakes.AnswerJSON(w, f.status, map[string]any{f.kind: map[string]any{"code": f.status, "message": f.message}})
}
