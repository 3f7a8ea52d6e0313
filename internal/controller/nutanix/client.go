package nutanix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/apis/nutanix/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

const (
	// callTimeout is the timeout of a call.
	callTimeout = 20 * time.Second
	// defaultPort is the port of Prism Central.
	defaultPort = "9440"
	// maxAnswer is the maximum size of a response in bytes.
	maxAnswer = 64 << 20
	// pageSize is the number of entries of a page: the API allows 1 to 100.
	pageSize = 100
	// maxPages bounds a list.
	maxPages = 1000
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

// credentials are the content of a configuration's Secret.
type credentials struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

func (c credentials) validate() error {
	if c.Username == "" || strings.Contains(c.Username, ":") {
		return errors.New("credentials: username: must not be empty, and must not contain a colon")
	}
	if c.Password == "" {
		return errors.New("credentials: password: must not be empty")
	}
	return nil
}

// A prism is a client of a Prism Central.
type prism struct {
	api         native.API
	credentials credentials
}

// newClient returns a client of the server. It makes no call.
func newClient(spec v1alpha1.ProviderConfigSpec, c credentials, next http.RoundTripper) (*prism, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	base, err := native.ServerURL(spec.Server, defaultPort)
	if err != nil {
		return nil, err
	}
	client, err := native.NewHTTPClient(next, spec.CABundle, spec.InsecureSkipVerify, callTimeout, time.Now)
	if err != nil {
		return nil, err
	}
	return &prism{credentials: c, api: native.API{Base: base, HTTP: client, MaxResponse: maxAnswer, ErrorOf: func(status int, body []byte) error { return errorOf(status, body) }}}, nil
}

// An apiError is an error response of the API.
type apiError struct {
	Status int
	// Code and Group of the error, such as VMM-30100 and VM_NOT_FOUND.
	Code, Group string
	Message     string
}

func (e *apiError) Error() string {
	text := e.Message
	if text == "" {
		text = http.StatusText(e.Status)
	}
	labels := []string{fmt.Sprintf("status %d", e.Status)}
	for _, l := range []string{e.Code, e.Group} {
		if l != "" {
			labels = append(labels, l)
		}
	}
	return fmt.Sprintf("%s (%s)", text, strings.Join(labels, ", "))
}

// asAPIError returns the error response in err, or nil if there is none.
func asAPIError(err error) *apiError {
	var e *apiError
	errors.As(err, &e)
	return e
}

// isNotFound reports whether err means that there is no object with the UUID of the call. A status 404 without a
// code is of a proxy, and proves nothing.
func isNotFound(err error) bool {
	e := asAPIError(err)
	return e != nil && e.Status == http.StatusNotFound && e.Code != ""
}

// A request is a call of the API.
type request struct {
	method, path string
	query        url.Values
	// etag is the version of the object that the call changes.
	etag string
	// id is the NTNX-Request-Id. Empty stands for a new one.
	id   string
	body any
}

// A reply is the response to a call.
type reply struct {
	etag string
	body []byte
}

// do makes a call. An error response is an apiError.
func (p *prism) do(ctx context.Context, r request) (reply, error) {
	req, err := p.api.NewJSONRequest(ctx, r.method, r.path, r.query, r.body)
	if err != nil {
		return reply{}, err
	}
	req.SetBasicAuth(p.credentials.Username, p.credentials.Password)
	if r.etag != "" {
		req.Header.Set("If-Match", r.etag)
	}
	if r.method != http.MethodGet {
		if r.id == "" {
			r.id = uuid.NewString()
		}
		req.Header.Set("NTNX-Request-Id", r.id)
	}
	b, header, err := p.api.Do(req)
	return reply{etag: header.Get("ETag"), body: b}, err
}

// A message is a message of version 4 of the API.
type message struct {
	Message  string `json:"message"`
	Code     string `json:"code"`
	Group    string `json:"errorGroup"`
	Severity string `json:"severity"`
}

// errorOf returns the error in a response. Version 4 has a list of messages, or the fields that violate the
// schema. Version 3 has a list of messages in another format. A proxy has neither.
func errorOf(status int, body []byte) *apiError {
	out := &apiError{Status: status}
	var v4 struct {
		Data struct {
			Error json.RawMessage `json:"error"`
		} `json:"data"`
		Messages []struct {
			Message string `json:"message"`
			Reason  string `json:"reason"`
		} `json:"message_list"`
	}
	if json.Unmarshal(body, &v4) != nil {
		return out
	}
	if len(v4.Messages) > 0 {
		out.Group, out.Message = v4.Messages[0].Reason, v4.Messages[0].Message
		return out
	}
	var messages []message
	if json.Unmarshal(v4.Data.Error, &messages) == nil && len(messages) > 0 {
		out.Code, out.Group = messages[0].Code, messages[0].Group
		var texts []string
		for _, m := range messages {
			texts = append(texts, m.Message)
		}
		out.Message = strings.Join(texts, "; ")
		return out
	}
	var schema struct {
		Error    string `json:"error"`
		Messages []struct {
			Message string `json:"message"`
			Path    string `json:"attributePath"`
		} `json:"validationErrorMessages"`
	}
	if json.Unmarshal(v4.Data.Error, &schema) == nil {
		texts := []string{schema.Error}
		for _, m := range schema.Messages {
			texts = append(texts, strings.TrimSpace(m.Path+" "+m.Message))
		}
		out.Message = strings.Trim(strings.Join(texts, ": "), ": ")
	}
	return out
}

// decode reads the data of a response.
func decode[T any](r reply) (T, error) {
	var out struct {
		Data T `json:"data"`
	}
	if err := json.Unmarshal(r.body, &out); err != nil {
		return out.Data, fmt.Errorf("the response is not valid: %w", err)
	}
	return out.Data, nil
}

// get reads an object and its ETag.
func get[T any](ctx context.Context, p *prism, path string) (T, string, error) {
	r, err := p.do(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		var none T
		return none, "", err
	}
	out, err := decode[T](r)
	return out, r.etag, err
}

// start makes a call that starts a task, and returns the ID of the task.
func (p *prism) start(ctx context.Context, r request) (string, error) {
	resp, err := p.do(ctx, r)
	if err != nil {
		return "", err
	}
	task, err := decode[struct {
		ExtID string `json:"extId"`
	}](resp)
	if err == nil && task.ExtID == "" {
		err = errors.New("the response has no task")
	}
	return task.ExtID, err
}

// list reads all pages of a list. The second value is false if the list changed meanwhile, so that an entry may be
// missing.
func list[T any](ctx context.Context, p *prism, path string, query url.Values, id func(T) string) ([]T, bool, error) {
	var out []T
	seen := map[string]bool{}
	for page := range maxPages {
		q := url.Values{"$page": {strconv.Itoa(page)}, "$limit": {strconv.Itoa(pageSize)}}
		for k, v := range query {
			q[k] = v
		}
		r, err := p.do(ctx, request{method: http.MethodGet, path: path, query: q})
		if err != nil {
			return nil, false, err
		}
		var answer struct {
			Data     []T `json:"data"`
			Metadata struct {
				Total int `json:"totalAvailableResults"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(r.body, &answer); err != nil {
			return nil, false, fmt.Errorf("the response is not valid: %w", err)
		}
		for _, e := range answer.Data {
			if !seen[id(e)] {
				seen[id(e)] = true
				out = append(out, e)
			}
		}
		if len(answer.Data) < pageSize || (page+1)*pageSize >= answer.Metadata.Total {
			return out, len(out) == answer.Metadata.Total, nil
		}
	}
	return out, false, nil
}

// quote returns a string of a filter.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// A task is a task of Prism Central.
type task struct {
	Status    string    `json:"status"`
	Operation string    `json:"operation"`
	Progress  int       `json:"progressPercentage"`
	Errors    []message `json:"errorMessages"`
	Legacy    string    `json:"legacyErrorMessage"`
	Entities  []struct {
		ExtID string `json:"extId"`
		Rel   string `json:"rel"`
	} `json:"entitiesAffected"`
}

// hasEnded reports whether the task does not run any longer.
func (t task) hasEnded() bool {
	return t.Status == "SUCCEEDED" || t.Status == "FAILED" || t.Status == "CANCELED"
}

// vm returns the UUID of the VM that the task changes, or "" if it is not known yet.
func (t task) vm() string {
	for _, e := range t.Entities {
		if e.Rel == "vmm:ahv:config:vm" || e.Rel == "vmm:ahv:vm" {
			return e.ExtID
		}
	}
	return ""
}

// failure returns the error of a task that failed.
func (t task) failure() *apiError {
	out := &apiError{Message: "the task was canceled"}
	if t.Status == "FAILED" {
		out.Message = t.Legacy
	}
	var texts []string
	for _, m := range t.Errors {
		texts = append(texts, m.Message)
		if out.Group == "" {
			out.Code, out.Group = m.Code, m.Group
		}
	}
	if len(texts) > 0 {
		out.Message = strings.Join(texts, "; ")
	}
	return out
}

// readTask returns a task. The second value is false if Prism Central no longer has the task.
func (a *account) readTask(ctx context.Context, id string) (task, bool, error) {
	t, _, err := get[task](ctx, a.client, pathTasks+"/"+url.PathEscape(id))
	if isNotFound(err) {
		return task{}, false, nil
	}
	return t, err == nil, classify("cannot read a task of the VM", err)
}
