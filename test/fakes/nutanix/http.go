package nutanix

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
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

// Paths of the API.
const (
	pathVMs        = "/api/vmm/v4.1/ahv/config/vms"
	pathImages     = "/api/vmm/v4.1/content/images"
	pathTasks      = "/api/prism/v4.1/config/tasks"
	pathCategories = "/api/prism/v4.1/config/categories"
	pathClusters   = "/api/clustermgmt/v4.1/config/clusters"
	pathContainers = "/api/clustermgmt/v4.1/config/storage-containers"
	pathSubnets    = "/api/networking/v4.1/config/subnets"
	pathProjects   = "/api/nutanix/v3/projects/list"
)

// CreateCall is the call that creates a VM, for a Fault.
const CreateCall = "POST " + pathVMs

// A Fault makes calls fail. Its Code is the code and the group of the error, separated by a space. The project that
// its Match gets is the name of the user.
type Fault = fakes.Fault

// A failure is an error response.
type failure struct {
	status int
	Message
	// fields are the attributes that violate the schema.
	fields map[string]string
}

func fail(status int, code, group, format string, args ...any) *failure {
	return &failure{status: status, Message: Message{Code: code, Group: group, Text: fmt.Sprintf(format, args...)}}
}

func badField(field, format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, fields: map[string]string{field: fmt.Sprintf(format, args...)}}
}

func noVM(id string) *failure {
	return fail(http.StatusNotFound, "VMM-30100", "VM_NOT_FOUND", "Failed to perform the operation on the VM with UUID '%s', because it is not found.", id)
}

// invalidArgument is the error of a task that got a wrong argument.
func invalidArgument(key, value string) *Message {
	return &Message{"VMM-30102", "VM_INVALID_ARGUMENT", fmt.Sprintf("Failed to perform the operation on the VM with UUID 'EMPTY', due to an invalid argument with key '%s' and value '%s'.", key, value)}
}

// A call is a request.
type call struct {
	*Prism
	now    time.Time
	method string
	path   string
	query  url.Values
	header http.Header
	body   object
	name   string
	user   User
}

// A result is the response to a successful call.
type result struct {
	status int
	etag   string
	body   any
}

func isID(part string) bool {
	_, err := uuid.Parse(strings.TrimPrefix(part, taskPrefix))
	return err == nil
}

// ServeHTTP responds to a request. It panics with [http.ErrAbortHandler] to cut the connection.
func (p *Prism) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := fakes.BodyOf(r)
	user, password, _ := r.BasicAuth()
	p.Serve(fakes.CallOf(r.Method, r.URL.Path, isID), user, body, func(f *fakes.Fault) {
		code, group, _ := strings.Cut(f.Code, " ")
		respond(w, result{}, fail(f.Status, code, group, "%s", f.Message))
	}, func() func() {
		c := &call{Prism: p, now: time.Now(), method: r.Method, path: r.URL.Path, query: r.URL.Query(), header: r.Header, name: user}
		out, problem := c.serve(password, body)
		return func() { respond(w, out, problem) }
	})
}

func respond(w http.ResponseWriter, out result, problem *failure) {
	if problem != nil {
		fakes.AnswerJSON(w, problem.status, problem.body())
		return
	}
	if out.etag != "" {
		w.Header().Set("ETag", out.etag)
	}
	fakes.AnswerJSON(w, out.status, out.body)
}

// body returns the error in the format of the API. A gateway refuses wrong credentials in the format of version 3.
func (f *failure) body() object {
	if f.status == http.StatusUnauthorized {
		return object{"state": "ERROR", "code": f.status, "api_version": "3.1", "message_list": []object{{"reason": f.Group, "message": f.Text}}}
	}
	if f.status == http.StatusTooManyRequests && f.Code == "" {
		return object{"message": f.Text}
	}
	if f.fields != nil {
		var list []object
		for _, k := range slices.Sorted(maps.Keys(f.fields)) {
			list = append(list, object{"location": "body", "attributePath": "$." + k, "message": f.fields[k]})
		}
		return object{"data": object{
			"$objectType": "vmm.v4.error.ErrorResponse", "$errorItemDiscriminator": "vmm.v4.error.SchemaValidationError",
			"error": object{"$objectType": "vmm.v4.error.SchemaValidationError", "statusCode": f.status, "error": "Request failed the schema validation", "validationErrorMessages": list},
		}}
	}
	return object{"$dataItemDiscriminator": "vmm.v4.error.ErrorResponse", "data": object{
		"$objectType": "vmm.v4.error.ErrorResponse", "$errorItemDiscriminator": "List<vmm.v4.error.AppMessage>",
		"error": []object{f.asObject()},
	}}
}

func (m Message) asObject() object {
	return object{"$objectType": "vmm.v4.error.AppMessage", "message": m.Text, "code": m.Code, "errorGroup": m.Group, "severity": "ERROR", "locale": "en-US"}
}

// serve authenticates a call and carries it out.
func (c *call) serve(password string, body []byte) (result, *failure) {
	c.mu.Lock()
	defer c.mu.Release()
	c.settle(c.now)
	if !c.Admits(c.now, c.opts.RateLimit, c.opts.Refill) {
		return result{}, fail(http.StatusTooManyRequests, "", "", "Too Many Requests")
	}
	u, ok := c.users[c.name]
	if !ok || u.Password != password {
		return result{}, fail(http.StatusUnauthorized, "", "AUTHENTICATION_REQUIRED", "Authentication required.")
	}
	c.user = u
	if len(body) > 0 {
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&c.body); err != nil {
			return result{}, badField("", "is not valid JSON")
		}
	}
	out, problem := c.route()
	if problem != nil {
		return out, problem
	}
	// The objects change when the lock is released.
	b, err := json.Marshal(out.body)
	if err != nil {
		panic(err)
	}
	out.body = json.RawMessage(b)
	return out, nil
}

func (c *call) route() (result, *failure) {
	if c.path == pathProjects && c.method == http.MethodPost {
		return c.listProjects()
	}
	for _, path := range []string{pathVMs, pathTasks, pathImages, pathCategories, pathClusters, pathContainers, pathSubnets} {
		rest, ok := strings.CutPrefix(c.path, path)
		switch {
		case !ok || rest != "" && rest[0] != '/':
		case path == pathVMs:
			return c.routeVM(strings.TrimPrefix(rest, "/"))
		case path == pathTasks && c.method == http.MethodGet:
			return c.getTask(strings.TrimPrefix(rest, "/"))
		case c.method == http.MethodGet && rest == "":
			return c.list(slices.Collect(maps.Values(c.objects[path])))
		case c.method == http.MethodGet:
			o := c.objects[path][lower(rest[1:])]
			if o == nil {
				return result{}, fail(http.StatusNotFound, "PLAT-40004", "ENTITY_NOT_FOUND", "The entity with UUID '%s' is not found.", rest[1:])
			}
			return result{status: http.StatusOK, body: object{"data": o}}, nil
		}
	}
	return result{}, fail(http.StatusNotFound, "", "", "Not Found")
}

func (c *call) routeVM(rest string) (result, *failure) {
	id, part, _ := strings.Cut(rest, "/")
	if c.method != http.MethodGet {
		switch {
		case c.user.ReadOnly:
			return result{}, fail(http.StatusForbidden, "", "ACCESS_DENIED", "No permission to access the resource.")
		case c.header.Get("NTNX-Request-Id") == "":
			return result{}, fail(http.StatusBadRequest, "PLAT-10001", "MISSING_REQUEST_ID_HEADER", "The header NTNX-Request-Id is missing.")
		}
		key := c.name + " " + c.header.Get("NTNX-Request-Id")
		if t, ok := c.requests[key]; ok {
			return accepted(t), nil
		}
		t, problem := c.change(lower(id), part)
		if problem == nil {
			c.requests[key] = t
		}
		return accepted(t), problem
	}
	if id == "" {
		var out []object
		for _, m := range c.vms {
			if c.sees(m) && c.now.Sub(m.created) >= c.opts.ListedAfter {
				out = append(out, c.view(m))
			}
		}
		return c.list(out)
	}
	m := c.vms[lower(id)]
	if m == nil || c.now.Sub(m.created) < c.opts.ReadableAfter {
		return result{}, noVM(id)
	}
	if !c.sees(m) {
		return result{}, fail(http.StatusForbidden, "", "ACCESS_DENIED", "No permission to access the resource.")
	}
	if part == "" {
		return result{status: http.StatusOK, etag: m.etag(), body: object{"data": c.view(m)}}, nil
	}
	d := m.disk(part)
	if d == nil {
		return result{}, fail(http.StatusNotFound, "VMM-30102", "VM_INVALID_ARGUMENT", "The disk '%s' is not found.", part)
	}
	return result{status: http.StatusOK, etag: m.etag(), body: object{"data": d}}, nil
}

func accepted(task string) result {
	return result{status: http.StatusAccepted, body: object{"data": object{"$objectType": "prism.v4.config.TaskReference", "extId": task}, "metadata": object{}}}
}

// change carries out a call that starts a task.
func (c *call) change(id, action string) (string, *failure) {
	if id == "" && c.method == http.MethodPost {
		return c.create()
	}
	m := c.vms[id]
	switch {
	case m == nil:
		return "", noVM(id)
	case !c.sees(m):
		return "", fail(http.StatusForbidden, "", "ACCESS_DENIED", "No permission to access the resource.")
	case c.header.Get("If-Match") == "":
		return "", fail(http.StatusPreconditionRequired, "PLAT-10004", "MISSING_ETAG_HEADER", "The header If-Match is missing.")
	case c.header.Get("If-Match") != m.etag():
		return "", fail(http.StatusPreconditionFailed, "VMM-30303", "VM_ETAG_MISMATCH", "If-Match header value passed does not match the ETag of the VM with UUID '%s'.", id)
	case c.method == http.MethodDelete && action == "":
		return c.delete(m), nil
	case c.method == http.MethodPost && action == "$actions/power-on":
		return c.powerOn(m), nil
	case c.method == http.MethodPost && (action == "$actions/reboot" || action == "$actions/reset" || action == "$actions/power-cycle"):
		return c.reboot(m, strings.TrimPrefix(action, "$actions/")), nil
	case c.method == http.MethodPut && m.disk(action) != nil:
		return c.resize(m, m.disk(action))
	}
	return "", fail(http.StatusNotFound, "", "", "Not Found")
}

// sees reports whether the user may read and change a VM.
func (c *call) sees(m *machine) bool {
	return c.user.Projects == nil || slices.Contains(c.user.Projects, m.project)
}

var (
	equal    = regexp.MustCompile(`^(\w+) eq '((?:[^']|'')*)'$`)
	selected = regexp.MustCompile(`^\w+(,\w+)*$`)
)

// list returns a page of objects.
func (c *call) list(all []object) (result, *failure) {
	if filter := c.query.Get("$filter"); filter != "" {
		for _, term := range strings.Split(filter, " and ") {
			m := equal.FindStringSubmatch(term)
			if m == nil {
				return result{}, badField("$filter", "is not valid: %s", filter)
			}
			all = slices.DeleteFunc(all, func(o object) bool { return text(o[m[1]]) != strings.ReplaceAll(m[2], "''", "'") })
		}
	}
	slices.SortFunc(all, func(a, b object) int { return strings.Compare(text(a["extId"]), text(b["extId"])) })
	page, limit := 0, 50
	for key, to := range map[string]*int{"$page": &page, "$limit": &limit} {
		if v := c.query.Get(key); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 || key == "$limit" && (n < 1 || n > 100) {
				return result{}, badField(key, "must be a positive integer between 1 and 100")
			}
			*to = n
		}
	}
	out := all[min(page*limit, len(all)):min((page+1)*limit, len(all))]
	if fields := c.query.Get("$select"); fields != "" {
		if !selected.MatchString(fields) {
			return result{}, badField("$select", "is not valid: %s", fields)
		}
		for i, o := range out {
			some := object{"extId": o["extId"]}
			for _, f := range strings.Split(fields, ",") {
				if v, ok := o[f]; ok {
					some[f] = v
				}
			}
			out[i] = some
		}
	}
	body := object{"metadata": object{"totalAvailableResults": len(all), "flags": []object{{"name": "isPaginated", "value": true}}}}
	if len(out) > 0 {
		body["data"] = out
	}
	return result{status: http.StatusOK, body: body}, nil
}

func (c *call) listProjects() (result, *failure) {
	offset, length := int(number(c.body["offset"])), int(number(c.body["length"]))
	if text(c.body["kind"]) != "project" || length < 1 {
		return result{}, badField("kind", "must be project")
	}
	ids := slices.Sorted(maps.Keys(c.projects))
	entities := []object{}
	for _, id := range ids[min(offset, len(ids)):min(offset+length, len(ids))] {
		entities = append(entities, object{"status": object{"name": c.projects[id], "state": "COMPLETE"}, "metadata": object{"kind": "project", "uuid": id}})
	}
	return result{status: http.StatusOK, body: object{"api_version": "3.1", "entities": entities, "metadata": object{"kind": "project", "total_matches": len(ids), "length": len(entities), "offset": offset}}}, nil
}

func (c *call) getTask(id string) (result, *failure) {
	t := c.tasks[id]
	if t == nil || t.owner != c.name && c.user.Projects != nil {
		return result{}, fail(http.StatusNotFound, "PRISM-10004", "TASK_NOT_FOUND", "The task with ID '%s' is not found.", id)
	}
	out := object{
		"$objectType": "prism.v4.config.Task", "extId": t.id, "operation": t.operation, "status": "QUEUED", "progressPercentage": 0,
		"createdTime": t.createdAt.UTC().Format(time.RFC3339Nano), "isCancelable": false,
	}
	if !c.now.Before(t.runsAt) {
		out["status"], out["progressPercentage"] = "RUNNING", 50
		out["entitiesAffected"] = []object{{"$objectType": "prism.v4.config.EntityReference", "extId": t.vm, "rel": "vmm:ahv:config:vm", "name": t.vmName}}
	}
	switch {
	case !t.ended:
	case t.failure != nil:
		out["status"], out["progressPercentage"] = "FAILED", 100
		out["errorMessages"] = []object{t.failure.asObject()}
	default:
		out["status"], out["progressPercentage"] = "SUCCEEDED", 100
	}
	return result{status: http.StatusOK, body: object{"data": out}}, nil
}
