package awsmodel

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
)

// A Judge passes requests to a fake, and judges them and its responses.
type Judge struct {
	models Models
	fake   http.Handler
	report func(error)

	mu    sync.Mutex
	codes map[string]int
	count int
}

// NewJudge returns a Judge, which calls report for each violation.
func NewJudge(m Models, fake http.Handler, report func(error)) *Judge {
	return &Judge{models: m, fake: fake, report: report, codes: map[string]int{}}
}

// Judged returns the number of requests that were judged, and the codes of the error responses.
func (j *Judge) Judged() (requests int, codes map[string]int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := map[string]int{}
	for k, n := range j.codes {
		out[k] = n
	}
	return j.count, out
}

// ServeHTTP judges a request, passes it to the fake, and judges its response. A request whose connection the fake cuts has no
// response.
func (j *Judge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, err := url.ParseQuery(string(body))
	if err != nil {
		j.report(err)
	}
	j.mu.Lock()
	j.count++
	j.mu.Unlock()
	model := j.models.Of(form.Get("Version"))
	if model == nil {
		j.fake.ServeHTTP(w, r)
		return
	}
	if err := model.Request(form); err != nil {
		j.report(err)
	}
	recorded := httptest.NewRecorder()
	j.fake.ServeHTTP(recorded, r)
	if recorded.Code >= http.StatusBadRequest {
		code, err := model.Failure(recorded.Body.Bytes())
		if err != nil {
			j.report(err)
		}
		j.mu.Lock()
		j.codes[code]++
		j.mu.Unlock()
	} else if err := model.Answer(form.Get("Action"), recorded.Body.Bytes()); err != nil {
		j.report(err)
	}
	for k, v := range recorded.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(recorded.Code)
	_, _ = w.Write(recorded.Body.Bytes())
}
