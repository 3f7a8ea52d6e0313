// Package api serves a cloud over HTTP.
package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/drover-dev/drover/internal/localcloud"

	"github.com/drover-dev/drover/cluster/cloud/internal/cloud"
)

// maxBody is large enough for user data of the largest size in base64, and the other fields.
const maxBody = 2 * localcloud.MaxUserDataBytes

type server struct {
	cloud *cloud.Cloud
	clock clock.Clock
	log   *slog.Logger
}

// handler answers a call with a status and the value of the body, or with an error.
type handler func(r *http.Request) (status int, body any, err error)

// New returns the API of a cloud, for callers that have the token.
func New(c *cloud.Cloud, token string, clk clock.Clock, log *slog.Logger) http.Handler {
	s := &server{cloud: c, clock: clk, log: log}
	limit := &limiter{clock: clk, rate: func() int { return c.Settings().RateLimit }}

	mux := http.NewServeMux()
	for pattern, h := range map[string]handler{
		"POST /v1/vms":             s.createVM,
		"GET /v1/vms":              s.listVMs,
		"GET /v1/vms/{id}":         s.getVM,
		"PATCH /v1/vms/{id}":       s.updateVM,
		"DELETE /v1/vms/{id}":      s.deleteVM,
		"POST /v1/vms/{id}/reboot": s.rebootVM,
		"GET /v1/vms/{id}/console": s.console,
		"GET /v1/images":           s.listImages,
	} {
		mux.Handle(pattern, s.serve(limit.limited(h)))
	}
	// Calls that control the cloud are not throttled: a test must be able to end a fault.
	for pattern, h := range map[string]handler{
		"GET /v1/quota":          s.getQuota,
		"PUT /v1/quota":          s.setQuota,
		"GET /v1/history":        s.getHistory,
		"GET /v1/settings":       s.getSettings,
		"PUT /v1/settings":       s.setSettings,
		"POST /v1/faults":        s.createFault,
		"GET /v1/faults":         s.listFaults,
		"DELETE /v1/faults/{id}": s.deleteFault,
	} {
		mux.Handle(pattern, s.serve(h))
	}
	mux.Handle("/", s.serve(func(r *http.Request) (int, any, error) {
		return 0, nil, localcloud.NewError(localcloud.CodeNotFound, "there is no call %s %s", r.Method, r.URL.Path)
	}))

	open := http.NewServeMux()
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	open.Handle("/", s.authenticated(token, mux))
	return open
}

// text is a body that is not JSON.
type text string

func (s *server) serve(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		status, body, err := h(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		if t, ok := body.(text); ok {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, string(t))
			return
		}
		s.write(w, status, body)
	})
}

func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var e *localcloud.Error
	if !errors.As(err, &e) {
		// Errors of this computer are logged, and hidden from the caller.
		s.log.Error("call failed", "method", r.Method, "path", r.URL.Path, "err", err)
		e = localcloud.NewError(localcloud.CodeInternal, "the cloud failed; its log has the reason")
	}
	if e.RetryAfter > 0 {
		seconds := (e.RetryAfter + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", fmt.Sprint(int(seconds)))
	}
	s.write(w, e.StatusCode, e)
}

func (s *server) write(w http.ResponseWriter, status int, body any) {
	if body == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.log.Debug("caller went away", "err", err)
	}
}

// read decodes a request's body into v. Fields that the body omits keep their values in v.
func read(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("more than one JSON value")
	}
	if err != nil {
		return localcloud.NewError(localcloud.CodeInvalidRequest, "body: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}
