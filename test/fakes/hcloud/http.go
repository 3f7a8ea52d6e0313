package hcloud

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/test/fakes"
)

// A failure is an error of the API.
type failure struct {
	status        int
	code, message string
	details       any
}

func (f *failure) Error() string { return f.message + " (" + f.code + ")" }

func fail(status int, code, format string, args ...any) *failure {
	return &failure{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

func invalid(field, message string) *failure {
	return &failure{status: http.StatusUnprocessableEntity, code: "invalid_input", message: fmt.Sprintf("invalid input in field '%s'", field),
		details: map[string]any{"fields": []map[string]any{{"name": field, "messages": []string{message}}}}}
}

// A call is one request of a project.
type call struct {
	*Cloud
	project *project
	now     time.Time
	query   url.Values
	body    func(any) *failure
	// after is called once the state is unlocked.
	after []func()
}

// ServeHTTP answers an API call.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := callOf(r.Method, r.URL.Path)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c.Note(name)
	time.Sleep(c.opts.Latency)
	c.mu.Lock()
	project := c.tokens[tokenOf(r)].project
	c.mu.Unlock()
	f := c.Of(name, project, body)
	if f != nil && !f.Lost {
		if f.Refused {
			panic(http.ErrAbortHandler)
		}
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		answerFailure(w, fail(f.Status, f.Code, "%s", f.Message))
		return
	}
	status, answer, problem := c.serve(w.Header(), r, name, body)
	switch {
	case f != nil && f.Lost:
		f.Done()
		panic(http.ErrAbortHandler)
	case problem != nil:
		answerFailure(w, problem)
	case answer == nil:
		w.WriteHeader(status)
	default:
		fakes.AnswerJSON(w, status, answer)
	}
}

func tokenOf(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func (c *Cloud) serve(h http.Header, r *http.Request, name string, body []byte) (int, any, *failure) {
	c.mu.Lock()
	in := &call{Cloud: c, now: time.Now(), query: r.URL.Query(), body: func(into any) *failure {
		if err := json.Unmarshal(body, into); err != nil {
			return fail(http.StatusBadRequest, "json_error", "unable to parse JSON")
		}
		return nil
	}}
	status, answer, problem := in.route(h, r, name)
	c.mu.Unlock()
	for _, do := range in.after {
		do()
	}
	return status, answer, problem
}

func (c *call) route(h http.Header, r *http.Request, name string) (int, any, *failure) {
	t, ok := c.tokens[tokenOf(r)]
	if !ok {
		return 0, nil, fail(http.StatusUnauthorized, "unauthorized", "the token you provided is invalid")
	}
	c.project = c.projects[t.project]
	if c.opts.RateLimit > 0 && !c.project.take(c.now, c.opts.RateLimit, c.opts.Refill, h) {
		return 0, nil, fail(http.StatusTooManyRequests, "rate_limit_exceeded", "limit of %d requests per hour reached", c.opts.RateLimit)
	}
	if t.readOnly && r.Method != http.MethodGet {
		return 0, nil, fail(http.StatusForbidden, "token_readonly", "token is only allowed to perform GET requests")
	}
	id := int64(0)
	for _, part := range strings.Split(r.URL.Path, "/") {
		if n, err := strconv.ParseInt(part, 10, 64); err == nil {
			id = n
		}
	}
	switch name {
	case "GET /servers":
		return c.listServers()
	case "POST /servers":
		return c.createServer()
	case "GET /servers/{id}":
		s, problem := c.server(id)
		if problem != nil {
			return 0, nil, problem
		}
		return http.StatusOK, schema.ServerGetResponse{Server: s.view(c.now)}, nil
	case "DELETE /servers/{id}":
		return c.deleteServer(id)
	case "POST /servers/{id}/actions/attach_to_network":
		return c.attach(id)
	case "POST /servers/{id}/actions/poweron":
		return c.powerOn(id)
	case "POST /servers/{id}/actions/reboot":
		return c.reboot(id)
	case "POST /servers/{id}/actions/reset":
		return c.reset(id)
	case "GET /actions":
		return c.listActions()
	case "GET /server_types", "GET /server_types/{id}":
		return one(c, id, "server_type", serverTypes, func(t schema.ServerType) (int64, string) { return t.ID, t.Name })
	case "GET /images", "GET /images/{id}":
		return one(c, id, "image", c.images(), func(i schema.Image) (int64, string) { return i.ID, ptr.Deref(i.Name, "") })
	case "GET /locations", "GET /locations/{id}":
		return one(c, id, "location", locations, func(l schema.Location) (int64, string) { return l.ID, l.Name })
	case "GET /ssh_keys", "GET /ssh_keys/{id}":
		return one(c, id, "ssh_key", c.project.sshKeys, func(k schema.SSHKey) (int64, string) { return k.ID, k.Name })
	case "GET /placement_groups":
		return c.listGroups()
	case "POST /placement_groups":
		return c.createGroup()
	case "GET /placement_groups/{id}":
		g, problem := c.group(id)
		if problem != nil {
			return 0, nil, problem
		}
		return http.StatusOK, schema.PlacementGroupGetResponse{PlacementGroup: c.project.viewGroup(g, c.now)}, nil
	case "DELETE /placement_groups/{id}":
		return c.deleteGroup(id)
	}
	return 0, nil, fail(http.StatusNotFound, "not_found", "no such endpoint: %s", name)
}

// one returns the resource with the ID, or those with the requested name.
func one[T any](c *call, id int64, kind string, all []T, of func(T) (int64, string)) (int, any, *failure) {
	if id != 0 {
		for _, t := range all {
			if n, _ := of(t); n == id {
				return http.StatusOK, map[string]any{kind: t}, nil
			}
		}
		return 0, nil, fail(http.StatusNotFound, "not_found", "%s with ID '%d' not found", kind, id)
	}
	found := []T{}
	for _, t := range all {
		if _, name := of(t); c.query.Get("name") == "" || name == c.query.Get("name") {
			found = append(found, t)
		}
	}
	return page(c, kind+"s", found)
}

// page of a list, with the API's metadata about all pages.
func page[T any](c *call, kind string, all []T) (int, any, *failure) {
	at, per := 1, 25
	if n, err := strconv.Atoi(c.query.Get("page")); err == nil {
		at = n
	}
	if n, err := strconv.Atoi(c.query.Get("per_page")); err == nil {
		per = n
	}
	if at < 1 || per < 1 || per > 50 {
		return 0, nil, invalid("per_page", "must be between 1 and 50")
	}
	last := max(1, (len(all)+per-1)/per)
	pages := map[string]any{"page": at, "per_page": per, "previous_page": nil, "next_page": nil, "last_page": last, "total_entries": len(all)}
	if at > 1 {
		pages["previous_page"] = at - 1
	}
	if at < last {
		pages["next_page"] = at + 1
	}
	from := min((at-1)*per, len(all))
	return http.StatusOK, map[string]any{kind: all[from:min(from+per, len(all))], "meta": map[string]any{"pagination": pages}}, nil
}

func (c *call) listActions() (int, any, *failure) {
	found := []schema.Action{}
	for _, text := range c.query["id"] {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && c.project.actions[n] != nil {
			found = append(found, c.project.actions[n].view(c.now))
		}
	}
	return page(c, "actions", found)
}

func (c *call) listServers() (int, any, *failure) {
	selector, err := labels.Parse(c.query.Get("label_selector"))
	if err != nil {
		return 0, nil, invalid("label_selector", err.Error())
	}
	found := []schema.Server{}
	for _, s := range c.project.servers {
		name := c.query.Get("name")
		if s.there(c.now) && (name == "" || s.Name == name) && selector.Matches(labels.Set(s.Labels)) {
			found = append(found, s.view(c.now))
		}
	}
	slices.SortFunc(found, func(a, b schema.Server) int { return int(a.ID - b.ID) })
	return page(c, "servers", found)
}

func answerFailure(w http.ResponseWriter, f *failure) {
	fakes.AnswerJSON(w, f.status, map[string]any{"error": map[string]any{"code": f.code, "message": f.message, "details": f.details}})
}
