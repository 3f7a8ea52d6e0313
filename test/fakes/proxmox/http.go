package proxmox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-dev/drover/test/fakes"
)

var errCut = errors.New("the connection was cut")

// A Fault makes calls fail. Its Message is the text of the status line. The project that its Match gets is
// the name of the token's user, without the realm.
type Fault = fakes.Fault

// A failure is an error response.
type failure struct {
	status int
	text   string
	// fields are the errors of parameters.
	fields map[string]string
	// bare means that there is no body, as for an unreachable node.
	bare bool
}

func fail(status int, format string, args ...any) *failure {
	return &failure{status: status, text: fmt.Sprintf(format, args...)}
}

func dies(format string, args ...any) *failure {
	return fail(http.StatusInternalServerError, format, args...)
}

func badParameter(field, format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, text: "Parameter verification failed.", fields: map[string]string{field: fmt.Sprintf(format, args...)}}
}

// A call is a request.
type call struct {
	*Cluster
	now    time.Time
	method string
	path   string
	params map[string]string
	upload *upload
	token  Token
	user   string
}

type upload struct {
	name string
	data []byte
}

type answer struct {
	status int
	reason string
	body   []byte
}

// RoundTrip responds to a request without a network.
func (c *Cluster) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	a, err := c.answer(req)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.status, a.reason), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json;charset=UTF-8"}}, Body: io.NopCloser(bytes.NewReader(a.body)),
		ContentLength: int64(len(a.body)), Request: req,
	}, nil
}

// ServeHTTP writes the whole response, because the handlers of net/http cannot choose the text of the
// status line.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, err := c.answer(r)
	conn, buffer, herr := http.NewResponseController(w).Hijack()
	if herr != nil {
		panic(herr)
	}
	defer func() { _ = conn.Close() }()
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(buffer, "HTTP/1.1 %d %s\r\nContent-Type: application/json;charset=UTF-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", a.status, a.reason, len(a.body))
	_, _ = buffer.Write(a.body)
	_ = buffer.Flush()
}

var ids = regexp.MustCompile(`^([0-9]+|UPID:.*|[a-z-]+:iso/.*|.*\.iso)$`)

// callOf returns the method and the path of a request, with {id}, {node} and {storage} in place of names.
func callOf(method, path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		switch {
		case i > 0 && parts[i-1] == "nodes":
			parts[i] = "{node}"
		case i > 0 && parts[i-1] == "storage":
			parts[i] = "{storage}"
		case ids.MatchString(p):
			parts[i] = "{id}"
		}
	}
	return method + " " + strings.Join(parts, "/")
}

// answer returns the response to a request. An error means that the connection is cut.
func (c *Cluster) answer(r *http.Request) (answer, error) {
	body := []byte{}
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return answer{}, err
		}
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/api2/json")
	if !ok {
		return failed(fail(http.StatusNotImplemented, "no such file '%s'", r.URL.Path)), nil
	}
	in := &call{Cluster: c, now: time.Now(), method: r.Method, path: path}
	name := callOf(r.Method, path)
	c.Note(name)
	f := c.Of(name, ownerOf(r.Header.Get("Authorization")), body)
	if f != nil && !f.Lost {
		if f.Refused {
			return answer{}, errCut
		}
		return failed(&failure{status: f.Status, text: f.Message, bare: f.Status >= 590}), nil
	}
	var problem *failure
	if in.params, in.upload, problem = parameters(r, body); problem != nil {
		return failed(problem), nil
	}
	data, problem := in.serve(r.Header.Get("Authorization"), name)
	switch {
	case f != nil && f.Lost:
		f.Done()
		return answer{}, errCut
	case problem != nil:
		return failed(problem), nil
	}
	b, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		panic(err)
	}
	return answer{status: http.StatusOK, reason: "OK", body: b}, nil
}

func failed(f *failure) answer {
	a := answer{status: f.status, reason: strings.TrimSpace(strings.ReplaceAll(f.text, "\n", " "))}
	if f.bare {
		return a
	}
	body := map[string]any{"data": nil, "message": f.text + "\n"}
	if f.fields != nil {
		body["errors"] = f.fields
	}
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	a.body = b
	return a
}

// parameters returns the parameters of a request: of its query, and of JSON, a form, or an upload.
func parameters(r *http.Request, body []byte) (map[string]string, *upload, *failure) {
	out := map[string]string{}
	add := func(v url.Values) {
		for k := range v {
			out[k] = v.Get(k)
		}
	}
	add(r.URL.Query())
	kind, options, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case len(body) == 0:
	case kind == "multipart/form-data":
		return parseUpload(multipart.NewReader(bytes.NewReader(body), options["boundary"]), out)
	case kind == "application/json":
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		m := map[string]any{}
		if err := d.Decode(&m); err != nil {
			return nil, nil, fail(http.StatusBadRequest, "malformed JSON string")
		}
		for k, v := range m {
			switch v := v.(type) {
			case bool:
				out[k] = map[bool]string{true: "1", false: "0"}[v]
			case nil:
			default:
				out[k] = fmt.Sprint(v)
			}
		}
	default:
		v, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, nil, fail(http.StatusBadRequest, "malformed form")
		}
		add(v)
	}
	return out, nil, nil
}

func parseUpload(m *multipart.Reader, params map[string]string) (map[string]string, *upload, *failure) {
	var up *upload
	for {
		part, err := m.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fail(http.StatusBadRequest, "malformed upload")
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, nil, fail(http.StatusBadRequest, "malformed upload")
		}
		if part.FormName() == "filename" {
			up = &upload{name: part.FileName(), data: data}
			continue
		}
		params[part.FormName()] = string(data)
	}
	if up == nil {
		return nil, nil, badParameter("filename", "property is missing and it is not optional")
	}
	return params, up, nil
}

var authorization = regexp.MustCompile(`^PVEAPIToken=(([^!]+)![^=]+)=(.+)$`)

func ownerOf(header string) string {
	m := authorization.FindStringSubmatch(header)
	if m == nil {
		return ""
	}
	name, _, _ := strings.Cut(m[2], "@")
	return name
}

// serve authenticates a call and carries it out.
func (c *call) serve(header, name string) (any, *failure) {
	c.mu.Lock()
	defer c.mu.Release()
	c.settle(c.now)
	if c.now.Before(c.unavailable) {
		return nil, fail(http.StatusServiceUnavailable, "Service Unavailable")
	}
	if c.opts.RateLimit > 0 {
		if ok, _, _ := c.bucket.Take(c.now, c.opts.RateLimit, c.opts.Refill); !ok {
			return nil, fail(http.StatusTooManyRequests, "Too Many Requests")
		}
	}
	m := authorization.FindStringSubmatch(header)
	if m == nil {
		return nil, fail(http.StatusUnauthorized, "No ticket")
	}
	t, ok := c.tokens[m[1]]
	switch {
	case !ok:
		return nil, fail(http.StatusUnauthorized, "no such token '%s' for user '%s'", strings.TrimPrefix(m[1], m[2]+"!"), m[2])
	case t.Secret != m[3]:
		return nil, fail(http.StatusUnauthorized, "invalid token value!")
	}
	c.token, c.user = t, m[1]
	return c.route(name)
}

func (c *call) route(name string) (any, *failure) {
	parts := strings.Split(strings.TrimPrefix(c.path, "/"), "/")
	if parts[0] != "nodes" {
		switch name {
		case "GET /cluster/status":
			return c.clusterStatus()
		case "GET /cluster/resources":
			return c.resources()
		case "GET /cluster/nextid":
			return c.nextFreeID()
		}
		return nil, fail(http.StatusNotImplemented, "Method '%s' not implemented", name)
	}
	if len(parts) < 3 {
		return nil, fail(http.StatusNotImplemented, "Method '%s' not implemented", name)
	}
	n := c.nodes[parts[1]]
	if n == nil {
		return nil, dies("hostname lookup '%s' failed - failed to get address info for: %s: Name or service not known", parts[1], parts[1])
	}
	if !n.online {
		return nil, &failure{status: 595, text: "No route to host", bare: true}
	}
	switch parts[2] {
	case "qemu":
		return c.qemu(n, parts[3:], name)
	case "storage":
		return c.storage(n, parts[3:], name)
	case "tasks":
		return c.task(parts[3:], name)
	}
	return nil, fail(http.StatusNotImplemented, "Method '%s' not implemented", name)
}

func (c *call) clusterStatus() (any, *failure) {
	out := []map[string]any{{"type": "cluster", "id": "cluster", "name": c.opts.Name, "quorate": 1, "version": 4, "nodes": len(c.nodes)}}
	for i, name := range c.opts.Nodes {
		out = append(out, map[string]any{"type": "node", "id": "node/" + name, "name": name, "nodeid": i + 1, "online": bit(c.nodes[name].online), "local": bit(i == 0)})
	}
	return out, nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sees reports whether the token may read a VM.
func (c *call) sees(m *machine) bool { return c.token.Audit || c.owns(m) }

// owns reports whether the token may change a VM, or clone a template.
func (c *call) owns(m *machine) bool {
	return c.token.Pools == nil || m.template || slices.Contains(c.token.Pools, m.pool)
}

func (c *call) resources() (any, *failure) {
	out := []map[string]any{}
	if kind := c.params["type"]; kind == "" || kind == "vm" {
		for _, m := range c.vms {
			if !c.sees(m) {
				continue
			}
			status := m.reported
			if !c.nodes[m.node].online {
				status = "unknown"
			}
			e := map[string]any{
				"id": fmt.Sprintf("qemu/%d", m.id), "type": "qemu", "vmid": m.id, "node": m.node, "status": status, "name": m.name(),
				"template": bit(m.template), "maxmem": m.memory, "maxcpu": 2, "maxdisk": 4 * gib, "mem": 0, "cpu": 0.01, "disk": 0, "uptime": 0,
			}
			for from, to := range map[string]string{"tags": "tags", "lock": "lock"} {
				if v := m.config[from]; v != "" {
					e[to] = v
				}
			}
			if m.pool != "" {
				e["pool"] = m.pool
			}
			out = append(out, e)
		}
	}
	if kind := c.params["type"]; kind == "" || kind == "node" {
		for _, n := range c.nodes {
			e := map[string]any{"id": "node/" + n.name, "type": "node", "node": n.name, "status": "offline"}
			if n.online {
				e["status"], e["maxmem"], e["mem"], e["maxcpu"], e["cpu"] = "online", n.memory, n.memory/10, 32, 0.1
			}
			out = append(out, e)
		}
	}
	if kind := c.params["type"]; kind == "" || kind == "storage" {
		for _, s := range c.storages {
			for _, n := range c.nodes {
				if s.on(n.name) {
					out = append(out, map[string]any{
						"id": "storage/" + n.name + "/" + s.name, "type": "storage", "node": n.name, "storage": s.name, "status": "available",
						"content": strings.Join(s.content, ","), "shared": bit(s.shared), "plugintype": "dir", "maxdisk": 1000 * gib, "disk": 10 * gib,
					})
				}
			}
		}
	}
	return out, nil
}

func (c *call) nextFreeID() (any, *failure) {
	text := c.params["vmid"]
	if text == "" {
		return strconv.Itoa(c.nextID()), nil
	}
	id, err := strconv.Atoi(text)
	if err != nil || id < 100 || id > 999999999 {
		return nil, badParameter("vmid", "type check ('integer') failed - got '%s'", text)
	}
	if c.vms[id] != nil {
		return nil, badParameter("vmid", "VM %d already exists", id)
	}
	return text, nil
}

func (c *call) task(parts []string, name string) (any, *failure) {
	if len(parts) == 0 {
		return nil, fail(http.StatusNotImplemented, "Method '%s' not implemented", name)
	}
	t := c.tasks[parts[0]]
	if t == nil {
		return nil, dies("unable to open file '/var/log/pve/tasks/%s' - No such file or directory", parts[0])
	}
	switch name {
	case "GET /nodes/{node}/tasks/{id}/status":
		out := map[string]any{
			"upid": t.upid, "node": t.node, "type": t.kind, "id": t.id, "user": t.user, "starttime": t.startedAt.Unix(),
			"pid": 4711, "pstart": 4711, "status": "running",
		}
		if t.exit != "" {
			out["status"], out["exitstatus"] = "stopped", t.exit
		}
		return out, nil
	case "DELETE /nodes/{node}/tasks/{id}":
		if t.exit == "" {
			t.exit = "interrupted by signal"
			c.interrupt(t)
		}
		return nil, nil
	}
	return nil, fail(http.StatusNotImplemented, "Method '%s' not implemented", name)
}
