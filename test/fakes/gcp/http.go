package gcp

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/fakes/gcpmodel"
	"github.com/drover-dev/drover/test/fakes/gcptest"
)

// A failure is an error response.
type failure struct {
	status          int
	reason, message string
}

// A call is a request that the API has.
type call struct {
	*Cloud
	*gcpmodel.Call
	now   time.Time
	query map[string][]string
	raw   []byte
	body  map[string]any
}

// An action carries out a call.
type action struct {
	permission string
	writes     bool
	do         func(*call) (any, *failure)
}

var actions = map[string]action{
	"compute.instances.insert":              {"compute.instances.create", true, (*call).insert},
	"compute.instances.get":                 {"compute.instances.get", false, (*call).get},
	"compute.instances.delete":              {"compute.instances.delete", true, (*call).delete},
	"compute.instances.start":               {"compute.instances.start", true, (*call).start},
	"compute.instances.reset":               {"compute.instances.reset", true, (*call).reset},
	"compute.instances.getSerialPortOutput": {"compute.instances.getSerialPortOutput", false, (*call).serialPort},
	"compute.zoneOperations.get":            {"compute.zoneOperations.get", false, (*call).getOperation},
	"compute.zoneOperations.list":           {"compute.zoneOperations.list", false, (*call).listOperations},
	"compute.machineTypes.get":              {"compute.machineTypes.get", false, (*call).machineType},
	"compute.images.get":                    {"compute.images.get", false, (*call).image},
	"compute.images.getFromFamily":          {"compute.images.getFromFamily", false, (*call).imageOfFamily},
}

const aggregated = "/aggregated/"

// ServeHTTP responds to a request, and reports it and its answer if they differ from Google's description.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !strings.HasPrefix(r.URL.Path, "/compute/") {
		c.serveTokens(w, r, body)
		return
	}
	x, err := c.model.Request(r.Method, r.URL, body)
	if err != nil {
		c.opts.Report(err)
		gcptest.Fail(w, http.StatusBadRequest, "badRequest", "global", err.Error())
		return
	}
	c.Count.Note(x.ID)
	recorded := httptest.NewRecorder()
	fault := c.Faults.Of(x.ID, c.opts.Project, body)
	switch {
	case fault != nil && fault.Refused:
		panic(http.ErrAbortHandler)
	case fault != nil && !fault.Lost:
		if fault.RetryAfter != "" {
			recorded.Header().Set("Retry-After", fault.RetryAfter)
		}
		gcptest.Fail(recorded, fault.Status, fault.Code, "global", fault.Message)
	default:
		c.serve(recorded, r, x, body)
	}
	if err := x.Answer(recorded.Code, recorded.Body.Bytes()); err != nil {
		c.opts.Report(err)
	}
	if fault != nil && fault.Lost {
		fault.Done()
		panic(http.ErrAbortHandler)
	}
	for k, v := range recorded.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(recorded.Code)
	_, _ = w.Write(recorded.Body.Bytes())
}

// serveTokens answers for the token endpoint and the metadata server.
func (c *Cloud) serveTokens(w http.ResponseWriter, r *http.Request, body []byte) {
	name := r.Method + " " + r.URL.Path
	c.Count.Note(name)
	fault := c.Faults.Of(name, c.opts.Project, body)
	if fault != nil && fault.Call == "" && !fault.Lost && !fault.Refused {
		fault = nil // The error is one of the Compute API.
	}
	if fault != nil && !fault.Lost {
		if fault.Refused {
			panic(http.ErrAbortHandler)
		}
		fakes.AnswerJSON(w, fault.Status, map[string]any{"error": fault.Code, "error_description": fault.Message})
		return
	}
	if fault != nil {
		w = httptest.NewRecorder()
	}
	c.tokens.ServeHTTP(w, r)
	if fault != nil {
		fault.Done()
		panic(http.ErrAbortHandler)
	}
}

// serve carries out a call.
func (c *Cloud) serve(w http.ResponseWriter, r *http.Request, x *gcpmodel.Call, body []byte) {
	now := time.Now()
	c.mu.Lock()
	c.settle(now)
	denied := now.Before(c.denies)
	c.mu.Release()
	if denied {
		gcptest.Fail(w, http.StatusForbidden, "rateLimitExceeded", "usageLimits", "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service 'compute.googleapis.com'.")
		return
	}
	if strings.Contains(r.URL.Path, aggregated) {
		c.tokens.ServeHTTP(w, r)
		return
	}
	a, ok := actions[x.ID]
	switch {
	case !ok:
		gcptest.Fail(w, http.StatusNotImplemented, "notImplemented", "global", "The fake has no "+x.ID+".")
		return
	case !c.Allow(w, r, a.permission, a.writes):
		return
	}
	k := &call{Cloud: c, Call: x, now: now, query: r.URL.Query(), raw: body}
	if len(body) > 0 {
		k.body = decode(body)
	}
	out, problem := k.carryOut(a)
	if problem != nil {
		gcptest.Fail(w, problem.status, problem.reason, "global", problem.message)
		return
	}
	partial, ok := gcptest.Partial(r.URL.Query().Get("fields"), out)
	if !ok {
		gcptest.Fail(w, http.StatusBadRequest, "invalidParameter", "global", "Invalid field selection "+r.URL.Query().Get("fields"))
		return
	}
	fakes.AnswerJSON(w, http.StatusOK, partial)
}

func (k *call) carryOut(a action) (any, *failure) {
	k.mu.Lock()
	defer k.mu.Release()
	if project := k.Parameters["project"]; project != k.opts.Project && !k.ofImages() {
		return nil, k.notFound("projects/" + project)
	}
	return a.do(k)
}

// ofImages reports whether the call is one of images, which other projects share.
func (k *call) ofImages() bool { return strings.HasPrefix(k.ID, "compute.images.") }
