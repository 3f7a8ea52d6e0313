package vcd

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/test/fakes"
)

// Calls, for a Fault.
const (
	CreateCall  = "POST /api/vdc/{id}/action/instantiateVmTemplate"
	PowerOnCall = "POST /api/vApp/{id}/power/action/powerOn"
	RebootCall  = "POST /api/vApp/{id}/power/action/reboot"
	ResetCall   = "POST /api/vApp/{id}/power/action/reset"
)

// A Fault makes calls fail. Its Code is the minor code of the error. The project that its Match gets is the name of the
// organization.
type Fault = fakes.Fault

// A failure is an error response.
type failure struct {
	status  int
	code    string
	message string
}

func fail(status int, code, format string, args ...any) *failure {
	return &failure{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// noEntity is the response for an entity that does not exist, or that the user may not see.
func noEntity(kind, id string) *failure {
	return fail(http.StatusForbidden, "ACCESS_TO_RESOURCE_IS_FORBIDDEN", "No access to entity \"com.vmware.vcloud.entity.%s:%s\".", kind, id)
}

func noRight(right string) *failure {
	return fail(http.StatusForbidden, "ACCESS_TO_RESOURCE_IS_FORBIDDEN", "Either you need some or all of the following rights [Base] to perform operations [%s] or the target entity is invalid.", right)
}

func badRequest(format string, args ...any) *failure {
	return fail(http.StatusBadRequest, "BAD_REQUEST", format, args...)
}

// A call is a request.
type call struct {
	*Director
	now    time.Time
	method string
	path   string
	query  url.Values
	header http.Header
	body   []byte
	org    *org
	name   string
	user   *User
	base   string
}

// A result is the response to a successful call.
type result struct {
	status int
	// token is the access token of a new session.
	token string
	// body is XML, unless it is JSON.
	body any
	json bool
}

var identified = regexp.MustCompile(`^((vm|vapp|vappTemplate)-|urn:vcloud:vdc:)?([0-9a-f-]{36})$`)

// ServeHTTP responds to a request. It panics with [http.ErrAbortHandler] to cut the connection.
func (d *Director) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := fakes.BodyOf(r)
	c := &call{
		Director: d, now: time.Now(), method: r.Method, path: r.URL.Path, query: r.URL.Query(), header: r.Header, body: body,
		// The public address has another name than the one that clients call.
		base: "https://cloud.example.org",
	}
	name := fakes.CallOf(r.Method, r.URL.Path, identified.MatchString)
	if i := strings.Index(name, " /oauth/tenant/"); i >= 0 {
		name = "POST /oauth/tenant/{org}/token"
	}
	d.Serve(name, c.organization(r), body, func(f *fakes.Fault) {
		c.respond(w, result{}, &failure{status: f.Status, code: f.Code, message: f.Message})
	}, func() func() {
		out, problem := c.serve(r)
		return func() { c.respond(w, out, problem) }
	})
}

// organization returns the name of the organization of a request, for faults.
func (c *call) organization(r *http.Request) string {
	if user, _, ok := r.BasicAuth(); ok {
		_, org, _ := strings.Cut(user, "@")
		return org
	}
	if rest, ok := strings.CutPrefix(c.path, "/oauth/tenant/"); ok {
		org, _, _ := strings.Cut(rest, "/")
		return org
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sessions[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]; s != nil {
		return s.org.name
	}
	return ""
}

// isJSON reports whether the call is of an API with JSON.
func (c *call) isJSON() bool { return !strings.HasPrefix(c.path, "/api/") }

func (c *call) respond(w http.ResponseWriter, out result, problem *failure) {
	if problem == nil && out.token != "" {
		w.Header().Set("X-VMWARE-VCLOUD-ACCESS-TOKEN", out.token)
		w.Header().Set("X-VMWARE-VCLOUD-TOKEN-TYPE", "Bearer")
	}
	switch {
	case problem != nil && problem.code == "":
		http.Error(w, problem.message, problem.status)
	case problem != nil && c.isJSON():
		fakes.AnswerJSON(w, problem.status, map[string]any{"minorErrorCode": problem.code, "message": "[ " + uuid.NewString() + " ] " + problem.message, "stackTrace": nil})
	case problem != nil:
		writeXML(w, problem.status, xmlError{Xmlns: nsVCloud, Message: "[ " + uuid.NewString() + " ] " + problem.message, Major: problem.status, Minor: problem.code})
	case out.json || out.body == nil:
		fakes.AnswerJSON(w, out.status, out.body)
	default:
		w.Header().Set("Content-Type", "application/*+xml;version=37.0")
		w.WriteHeader(out.status)
		_, _ = w.Write(out.body.([]byte))
	}
}

func writeXML(w http.ResponseWriter, status int, v any) {
	b, err := xml.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/vnd.vmware.vcloud.error+xml;version=37.0")
	w.WriteHeader(status)
	_, _ = w.Write(append([]byte(xml.Header), b...))
}

// versions are the versions of the API that Cloud Director 10.5 serves.
var version = regexp.MustCompile(`^application/(json|\*\+xml);version=3[678]\.[0-3]$`)

// serve authenticates a call and carries it out.
func (c *call) serve(r *http.Request) (result, *failure) {
	c.mu.Lock()
	defer c.mu.Release()
	c.settle(c.now)
	if !c.Admits(c.now, c.opts.RateLimit, c.opts.Refill) {
		return result{}, fail(http.StatusTooManyRequests, "", "Too Many Requests")
	}
	if strings.HasPrefix(c.path, "/oauth/tenant/") {
		return c.grant()
	}
	if !version.MatchString(c.header.Get("Accept")) {
		return result{}, fail(http.StatusNotAcceptable, "NOT_ACCEPTABLE", "The request has Accept header %q with an unsupported version.", c.header.Get("Accept"))
	}
	if c.path == "/cloudapi/1.0.0/sessions" && c.method == http.MethodPost {
		return c.logIn(r)
	}
	token, bearer := strings.CutPrefix(c.header.Get("Authorization"), "Bearer ")
	s := c.sessions[token]
	if !bearer || s == nil || !s.ends.IsZero() && s.ends.Before(c.now) {
		return result{}, fail(http.StatusUnauthorized, "ACCESS_TO_RESOURCE_IS_FORBIDDEN", "This operation is denied.")
	}
	c.org, c.name, c.user = s.org, s.user, s.org.users[s.user]
	if c.path == "/cloudapi/1.0.0/sessions/current" {
		if c.method == http.MethodDelete {
			delete(c.sessions, token)
			return result{status: http.StatusNoContent}, nil
		}
		return result{status: http.StatusOK, json: true, body: c.sessionBody()}, nil
	}
	out, problem := c.route()
	if problem != nil {
		return out, problem
	}
	// The objects change when the lock is released.
	var b []byte
	var err error
	if out.json {
		b, err = json.Marshal(out.body)
		out.body = json.RawMessage(b)
	} else {
		b, err = xml.Marshal(out.body)
		out.body = append([]byte(xml.Header), b...)
	}
	if err != nil {
		panic(err)
	}
	return out, nil
}

func (c *call) sessionBody() map[string]any {
	return map[string]any{
		"id": "urn:vcloud:session:" + uuid.NewString(), "site": map[string]any{"name": "cloud.example.org"},
		"user": map[string]any{"name": c.name, "id": "urn:vcloud:user:" + c.user.id}, "org": map[string]any{"name": c.org.name, "id": "urn:vcloud:org:" + c.org.id},
	}
}

// newSession begins a session.
func (c *call) newSession(o *org, user string) string {
	token := newToken()
	s := &session{org: o, user: user}
	if c.opts.SessionLasts > 0 {
		s.ends = c.now.Add(c.opts.SessionLasts)
	}
	c.sessions[token] = s
	return token
}

// logIn begins a session with a password.
func (c *call) logIn(r *http.Request) (result, *failure) {
	login, password, _ := r.BasicAuth()
	i := strings.LastIndex(login, "@")
	if i < 0 {
		return result{}, fail(http.StatusUnauthorized, "UNAUTHORIZED", "Unauthorized")
	}
	o := c.orgs[login[i+1:]]
	if o == nil || o.users[login[:i]] == nil || o.users[login[:i]].Password == "" || o.users[login[:i]].Password != password {
		return result{}, fail(http.StatusUnauthorized, "UNAUTHORIZED", "Unauthorized")
	}
	c.org, c.name, c.user = o, login[:i], o.users[login[:i]]
	return result{status: http.StatusOK, json: true, token: c.newSession(o, c.name), body: c.sessionBody()}, nil
}

// grant begins a session with an API token.
func (c *call) grant() (result, *failure) {
	name := strings.TrimSuffix(strings.TrimPrefix(c.path, "/oauth/tenant/"), "/token")
	form, err := url.ParseQuery(string(c.body))
	if err != nil || c.method != http.MethodPost || c.header.Get("Content-Type") != "application/x-www-form-urlencoded" || form.Get("grant_type") != "refresh_token" {
		return result{}, fail(http.StatusBadRequest, "unsupported_grant_type", "Unsupported grant type")
	}
	o := c.orgs[name]
	if o != nil {
		for user, u := range o.users {
			if u.APIToken == "" || u.APIToken != form.Get("refresh_token") {
				continue
			}
			body := map[string]any{"access_token": c.newSession(o, user), "token_type": "Bearer", "expires_in": 3600, "refresh_token": nil}
			if u.ServiceAccount {
				u.APIToken = newToken()[:32]
				body["refresh_token"] = u.APIToken
			}
			return result{status: http.StatusOK, json: true, body: body}, nil
		}
	}
	return result{}, fail(http.StatusBadRequest, "invalid_grant", "Invalid refresh token")
}

func (c *call) route() (result, *failure) {
	parts := strings.Split(strings.Trim(c.path, "/"), "/")
	get := c.method == http.MethodGet
	switch {
	case c.path == "/api/query" && get:
		return c.search()
	case len(parts) == 3 && parts[0] == "api" && parts[1] == "vdc" && get:
		if v := c.org.vdcs[parts[2]]; v != nil {
			return ok(c.vdcXML(v))
		}
		return result{}, noEntity("vdc", parts[2])
	case len(parts) == 5 && strings.HasPrefix(c.path, "/api/vdc/") && strings.HasSuffix(c.path, "/action/instantiateVmTemplate") && c.method == http.MethodPost:
		return c.create(parts[2])
	case len(parts) == 3 && parts[1] == "vAppTemplate" && get:
		return c.getTemplate(strings.TrimPrefix(parts[2], "vappTemplate-"))
	case len(parts) == 3 && parts[1] == "task" && get:
		t := c.tasks[parts[2]]
		if t == nil || t.org != c.org {
			return result{}, noEntity("task", parts[2])
		}
		return ok(c.taskXML(t))
	case len(parts) >= 3 && parts[1] == "vApp" && strings.HasPrefix(parts[2], "vapp-"):
		return c.routeVApp(strings.TrimPrefix(parts[2], "vapp-"))
	case len(parts) >= 3 && parts[1] == "vApp" && strings.HasPrefix(parts[2], "vm-"):
		return c.routeVM(strings.TrimPrefix(parts[2], "vm-"), strings.Join(parts[3:], "/"))
	case len(parts) == 5 && parts[0] == "cloudapi" && parts[2] == "vdcs" && parts[4] == "computePolicies" && get:
		return c.listPolicies(strings.TrimPrefix(parts[3], "urn:vcloud:vdc:"))
	}
	return result{}, fail(http.StatusNotFound, "RESOURCE_NOT_FOUND", "%s %s is not found.", c.method, c.path)
}

func ok(body any) (result, *failure) { return result{status: http.StatusOK, body: body}, nil }

// sees reports whether the user may see a vApp and its VM.
func (c *call) sees(a *vApp) bool {
	return a.org == c.org && c.org.vdcs[a.vdc.id] != nil && (!c.user.Own || a.owner == c.name)
}

// decode reads the body of a call, which must have a type.
func (c *call) decode(contentType string, into any) *failure {
	if got := c.header.Get("Content-Type"); got != "application/vnd.vmware.vcloud."+contentType+"+xml" {
		return fail(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", "The media type %s is not supported.", got)
	}
	if err := xml.Unmarshal(c.body, into); err != nil {
		return badRequest("Bad request: %v", err)
	}
	return nil
}

func (c *call) listPolicies(id string) (result, *failure) {
	v := c.org.vdcs[id]
	if v == nil {
		return result{}, noEntity("vdc", id)
	}
	page, size := c.number("page", 1), c.number("pageSize", 25)
	if page < 1 || size < 1 || size > 128 {
		return result{}, badRequest("The page size must be between 1 and 128.")
	}
	from := min((page-1)*size, len(v.policies))
	return result{status: http.StatusOK, json: true, body: map[string]any{
		"resultTotal": len(v.policies), "pageCount": (len(v.policies) + size - 1) / size, "page": page, "pageSize": size,
		"values": v.policies[from:min(from+size, len(v.policies))],
	}}, nil
}

func (c *call) number(key string, other int) int {
	text := c.query.Get(key)
	if text == "" {
		return other
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// conditions reads the filter of a query: terms that must all be met.
func (c *call) conditions() (map[string]string, *failure) {
	out := map[string]string{}
	text := c.query.Get("filter")
	if text == "" {
		return out, nil
	}
	for _, term := range strings.Split(text, ";") {
		attribute, value, ok := strings.Cut(term, "==")
		if c.query.Get("filterEncoded") == "true" {
			decoded, err := url.QueryUnescape(value)
			if err != nil {
				ok = false
			}
			value = decoded
		}
		if !ok {
			return nil, badRequest("Invalid FIQL format: %s", text)
		}
		out[attribute] = value
	}
	return out, nil
}

// A found record has its attributes.
type found struct {
	href       string
	element    string
	attributes map[string]string
	metadata   map[string]string
}

// search responds to a query.
func (c *call) search() (result, *failure) {
	conditions, problem := c.conditions()
	if problem != nil {
		return result{}, problem
	}
	var all []found
	switch c.query.Get("type") {
	case "vm":
		all = c.findVMs()
	case "orgVdc":
		for _, v := range c.org.vdcs {
			all = append(all, found{href: c.base + "/api/vdc/" + v.id, element: "OrgVdcRecord", attributes: map[string]string{"name": v.name}})
		}
	case "vAppTemplate":
		for _, t := range c.org.templates {
			all = append(all, found{
				href: c.base + "/api/vAppTemplate/vappTemplate-" + t.id, element: "VAppTemplateRecord",
				attributes: map[string]string{"name": t.name, "catalogName": Catalog, "status": t.status},
			})
		}
	default:
		return result{}, badRequest("Invalid query type: %s", c.query.Get("type"))
	}
	for attribute, value := range conditions {
		var unknown bool
		all = slices.DeleteFunc(all, func(f found) bool {
			got, ok := f.attributes[attribute]
			unknown = unknown || !ok
			return got != value
		})
		if unknown {
			return result{}, badRequest("Unknown property name %s in the filter.", attribute)
		}
	}
	slices.SortFunc(all, func(a, b found) int { return strings.Compare(a.href, b.href) })
	page, size := c.number("page", 1), c.number("pageSize", 25)
	switch {
	case size < 1 || size > 128:
		return result{}, badRequest("The page size must be between 1 and 128.")
	case page < 1 || page > 1 && (page-1)*size >= len(all):
		return result{}, badRequest("Page %d does not exist.", page)
	}
	from := (page - 1) * size
	out := xmlRecords{Xmlns: nsVCloud, Xsi: nsXSI, Total: len(all), Page: page, PageSize: size, Name: c.query.Get("type")}
	for _, f := range all[from:min(from+size, len(all))] {
		out.Records = append(out.Records, c.recordXML(f))
	}
	return ok(out)
}

// recordXML returns a record with the attributes that the query requests.
func (c *call) recordXML(f found) xmlRecord {
	out := xmlRecord{XMLName: xml.Name{Local: f.element}, Attributes: []xml.Attr{{Name: xml.Name{Local: "href"}, Value: f.href}}}
	fields := strings.Split(c.query.Get("fields"), ",")
	for name, value := range f.attributes {
		if c.query.Get("fields") == "" || slices.Contains(fields, name) {
			out.Attributes = append(out.Attributes, xml.Attr{Name: xml.Name{Local: name}, Value: value})
		}
	}
	slices.SortFunc(out.Attributes, func(a, b xml.Attr) int { return strings.Compare(a.Name.Local, b.Name.Local) })
	for _, field := range fields {
		key, ok := strings.CutPrefix(field, "metadata:")
		if value, has := f.metadata[key]; ok && has {
			if out.Metadata == nil {
				out.Metadata = &xmlMetadata{}
			}
			out.Metadata.Entries = append(out.Metadata.Entries, xmlEntry{Key: key, Value: xmlTyped{Type: "MetadataStringValue", Value: value}})
		}
	}
	return out
}

func (c *call) findVMs() []found {
	var out []found
	for _, m := range c.vms {
		if !c.sees(m.vApp) || c.now.Sub(m.created) < c.opts.ListedAfter {
			continue
		}
		out = append(out, found{
			href: c.base + "/api/vApp/vm-" + m.id, element: "VMRecord", metadata: m.metadata,
			attributes: map[string]string{
				"name": m.name, "description": m.description, "status": statusTexts[m.status], "isVAppTemplate": "false", "vdc": c.base + "/api/vdc/" + m.vApp.vdc.id,
				"dateCreated": m.created.UTC().Format("2006-01-02T15:04:05.000Z"),
			},
		})
	}
	for _, t := range c.org.templates {
		for _, id := range t.vms {
			out = append(out, found{
				href: c.base + "/api/vAppTemplate/vm-" + id, element: "VMRecord",
				attributes: map[string]string{"name": t.name, "description": "", "status": "POWERED_OFF", "isVAppTemplate": "true", "vdc": "", "dateCreated": ""},
			})
		}
	}
	return out
}
