// Package digitaloceantest is a fake of the calls of DigitalOcean's API that list Droplets,
// volumes and reserved IPs. A function provides these, so that a test or a simulator of the cloud
// keeps the state.
//
// Sources of the formats: the OpenAPI description of the API (github.com/digitalocean/openapi,
// resources/droplets, volumes, reserved_ips, and shared/responses for errors and headers) as
// published at https://docs.digitalocean.com/reference/api/digitalocean/, and the types of
// godo, by which bodies are written.
package digitaloceantest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/digitalocean/godo"

	"github.com/drover-dev/drover/test/fakes"
)

const (
	// defaultPage and maxPage are the numbers of items of a page, of
	// shared/parameters/per_page.yml.
	defaultPage, maxPage = 20, 200
)

// An Account has the resources of one account.
type Account struct {
	Droplets    []godo.Droplet
	Volumes     []godo.Volume
	ReservedIPs []godo.ReservedIP
}

// A Token of the API.
type Token struct {
	// Scopes of the token, such as droplet:read. A token without scopes has full access.
	Scopes []string
}

// Options of a Server.
type Options struct {
	// State returns the resources of the account. It is called once per request.
	State func() Account
	// Tokens by their values, at the time of each request.
	Tokens func() map[string]Token
	// RateLimit is how many calls may be made at once. After each Refill, one more may be made.
	// Default 0: no limit.
	RateLimit int
	Refill    time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// A Server is the API.
type Server struct {
	fakes.Faults
	fakes.Count
	opts Options

	mu     sync.Mutex
	bucket fakes.Bucket
}

// New returns a Server.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Server{opts: o}
}

// ServeHTTP serves GET /v2/droplets, /v2/droplets/{id}, /v2/volumes and /v2/reserved_ips.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	call := req.Method + " " + req.URL.Path
	s.Note(call)
	w.Header().Set("X-Request-Id", fmt.Sprintf("request-%d", s.number()))
	token, known := s.opts.Tokens()[strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")]
	if !known {
		fail(w, http.StatusUnauthorized, "Unauthorized", "Unable to authenticate you")
		return
	}
	if !s.admit(w) {
		return
	}
	if f := s.Of(call, "", nil); f != nil {
		breakWith(w, f)
		return
	}
	scope, serve := route(req)
	switch {
	case serve == nil:
		fail(w, http.StatusNotFound, "not_found", "The resource you requested could not be found.")
	case len(token.Scopes) > 0 && !slices.Contains(token.Scopes, scope):
		fail(w, http.StatusForbidden, "Forbidden", "You are missing the required permission "+scope+".")
	default:
		serve(w, req, s.opts.State())
	}
}

func (s *Server) number() int {
	_, n := s.Calls()
	return n
}

// admit counts a call against the limit. The headers are those of shared/headers.yml. Header
// retry-after is that of a burst.
func (s *Server) admit(w http.ResponseWriter) bool {
	if s.opts.RateLimit == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	ok, left, full := s.bucket.Take(now, s.opts.RateLimit, s.opts.Refill)
	h := w.Header()
	h.Set("Ratelimit-Limit", strconv.Itoa(s.opts.RateLimit))
	h.Set("Ratelimit-Remaining", strconv.Itoa(left))
	h.Set("Ratelimit-Reset", strconv.FormatInt(full.Unix(), 10))
	if !ok {
		h.Set("Retry-After", strconv.Itoa(int(s.opts.Refill/time.Second)))
		fail(w, http.StatusTooManyRequests, "too_many_requests", "API rate limit exceeded.")
	}
	return ok
}

func breakWith(w http.ResponseWriter, f *fakes.Fault) {
	if f.Lost || f.Refused {
		panic(http.ErrAbortHandler)
	}
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	fail(w, f.Status, f.Code, f.Message)
}

// fail in the format of shared/models/error.yml.
func fail(w http.ResponseWriter, status int, id, message string) {
	fakes.AnswerJSON(w, status, map[string]string{"id": id, "message": message, "request_id": w.Header().Get("X-Request-Id")})
}

type serve func(http.ResponseWriter, *http.Request, Account)

// route returns the scope that a call needs, and the function that serves it.
func route(req *http.Request) (string, serve) {
	if req.Method != http.MethodGet {
		return "", nil
	}
	if id, ok := strings.CutPrefix(req.URL.Path, "/v2/droplets/"); ok {
		return "droplet:read", func(w http.ResponseWriter, _ *http.Request, a Account) { answerDroplet(w, a.Droplets, id) }
	}
	switch req.URL.Path {
	case "/v2/droplets":
		return "droplet:read", func(w http.ResponseWriter, r *http.Request, a Account) {
			answer(w, r, "droplets", withTag(a.Droplets, r.URL.Query().Get("tag_name")))
		}
	case "/v2/volumes":
		return "block_storage:read", func(w http.ResponseWriter, r *http.Request, a Account) { answer(w, r, "volumes", a.Volumes) }
	case "/v2/reserved_ips":
		return "reserved_ip:read", func(w http.ResponseWriter, r *http.Request, a Account) { answer(w, r, "reserved_ips", a.ReservedIPs) }
	}
	return "", nil
}

func answerDroplet(w http.ResponseWriter, droplets []godo.Droplet, id string) {
	for i := range droplets {
		if strconv.Itoa(droplets[i].ID) == id {
			fakes.AnswerJSON(w, http.StatusOK, map[string]any{"droplet": &droplets[i]})
			return
		}
	}
	fail(w, http.StatusNotFound, "not_found", "The resource you requested could not be found.")
}

// withTag returns the Droplets with a tag, whose case does not count.
func withTag(droplets []godo.Droplet, tag string) []godo.Droplet {
	if tag == "" {
		return droplets
	}
	return slices.DeleteFunc(slices.Clone(droplets), func(d godo.Droplet) bool {
		return !slices.ContainsFunc(d.Tags, func(t string) bool { return strings.EqualFold(t, tag) })
	})
}

// answer writes one page, with links to the other pages and the total, as in
// shared/models/page_links.yml and meta.yml.
func answer[T any](w http.ResponseWriter, req *http.Request, key string, items []T) {
	q := req.URL.Query()
	page, size := number(q, "page", 1), min(number(q, "per_page", defaultPage), maxPage)
	from := min((page-1)*size, len(items))
	to := min(from+size, len(items))
	last := max(1, (len(items)+size-1)/size)
	links := map[string]any{}
	if last > 1 {
		pages := map[string]string{}
		if page > 1 {
			pages["first"], pages["prev"] = pageURL(req, 1), pageURL(req, page-1)
		}
		if page < last {
			pages["next"], pages["last"] = pageURL(req, page+1), pageURL(req, last)
		}
		links["pages"] = pages
	}
	found := items[from:to]
	if found == nil {
		found = []T{}
	}
	fakes.AnswerJSON(w, http.StatusOK, map[string]any{key: found, "links": links, "meta": map[string]int{"total": len(items)}})
}

func number(q url.Values, key string, or int) int {
	if n, err := strconv.Atoi(q.Get(key)); err == nil && n > 0 {
		return n
	}
	return or
}

func pageURL(req *http.Request, page int) string {
	u := *req.URL
	u.Scheme, u.Host = "https", req.Host
	q := u.Query()
	q.Set("page", strconv.Itoa(page))
	u.RawQuery = q.Encode()
	return u.String()
}
