// Package awstest is a fake of EC2. It speaks the query API of version 2016-11-15 in its own XML:
// the requests and answers are those of the Amazon EC2 API Reference, pages DescribeInstances,
// DescribeNetworkInterfaces, DescribeVolumes, DescribeAddresses, "Query requests", "Error codes for
// the Amazon EC2 API" and "Request throttling". Requests must be signed (Signature Version 4).
package awstest

import (
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
)

// version of the API.
const version = "2016-11-15"

// Limits of EC2.
const (
	maxValues  = 200
	minResults = 5
	maxResults = 1000
)

// A Backend provides the resources of an account in a region.
type Backend interface {
	Instances(account, region string) []Instance
	Beside(account, region string) Beside
}

// An Account that EC2 knows.
type Account struct {
	// ID is a number of twelve digits.
	ID string
	// Secret access key.
	Secret string
	// SessionToken that requests must have, "" for long-term credentials.
	SessionToken string
	// Denied actions, such as DescribeAddresses.
	Denied []string
}

// Options of a Server.
type Options struct {
	// Burst is how many calls of an action an account may make at once, and Refill after how long
	// it may make one more. Burst 0 throttles nothing.
	Burst  int
	Refill time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// A Server is an endpoint of EC2 for all regions.
type Server struct {
	backend Backend
	options Options

	mu       sync.Mutex
	accounts map[string]Account
	buckets  map[string]*bucket
	calls    map[string]int
	faults   []Fault
	requests int
}

// A Fault answers calls of an action in EC2's words.
type Fault struct {
	Action  string
	Status  int
	Code    string
	Message string
	// The fault begins after After calls that succeed, and lasts for Times calls. If Times is 0, it
	// does not end.
	After, Times int
}

type bucket struct {
	left int
	at   time.Time
}

// New returns a Server with the content of a backend.
func New(b Backend, o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Server{backend: b, options: o, accounts: map[string]Account{}, buckets: map[string]*bucket{}, calls: map[string]int{}}
}

// Admit makes EC2 accept an access key.
func (s *Server) Admit(accessKeyID string, a Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accounts[accessKeyID] = a
}

// Break makes calls of an action fail.
func (s *Server) Break(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
}

// Calls that were answered, by action.
func (s *Server) Calls() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for action, n := range s.calls {
		out[action] = n
	}
	return out
}

// A failure is an error of EC2.
type failure struct {
	status        int
	code, message string
}

func fail(status int, code, format string, args ...any) *failure {
	return &failure{status, code, fmt.Sprintf(format, args...)}
}

// ServeHTTP answers a query request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests++
	id := fmt.Sprintf("%08x-0000-4000-8000-%012x", s.requests, s.requests)
	s.mu.Unlock()
	answer, f := s.answer(r, id)
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.Header().Set("x-amzn-RequestId", id)
	if f != nil {
		w.WriteHeader(f.status)
		answer = errorResponse{Errors: []errorItem{{f.code, f.message}}, RequestID: id}
	}
	_, _ = io.WriteString(w, xml.Header)
	_ = xml.NewEncoder(w).Encode(answer)
}

func (s *Server) answer(r *http.Request, id string) (any, *failure) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return nil, fail(http.StatusBadRequest, "InvalidRequest", "The request received was invalid")
	}
	account, region, f := s.authenticate(r, body)
	if f != nil {
		return nil, f
	}
	query, err := url.ParseQuery(string(body))
	if err != nil || query.Get("Version") != version {
		return nil, fail(http.StatusBadRequest, "InvalidParameterValue", "The version %s is not valid", query.Get("Version"))
	}
	action := query.Get("Action")
	if f := s.admitCall(account, action); f != nil {
		return nil, f
	}
	page := pageOf(query)
	if page.failure != nil {
		return nil, page.failure
	}
	switch action {
	case "DescribeInstances":
		return describeInstances(id, account.ID, s.backend.Instances(account.ID, region), page)
	case "DescribeNetworkInterfaces":
		return describeNetworkInterfaces(id, s.backend.Beside(account.ID, region).NetworkInterfaces, page)
	case "DescribeVolumes":
		return describeVolumes(id, s.backend.Beside(account.ID, region).Volumes, page)
	case "DescribeAddresses":
		return describeAddresses(id, s.backend.Beside(account.ID, region).Addresses, page)
	}
	return nil, fail(http.StatusBadRequest, "InvalidAction", "The action %s is not valid for this web service.", action)
}

// admitCall of an action, unless it is denied, throttled or broken.
func (s *Server) admitCall(a Account, action string) *failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(a.Denied, action) {
		return fail(http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation. User: arn:aws:iam::%s:user/drover is not authorized to perform: ec2:%s because no identity-based policy allows the ec2:%s action", a.ID, action, action)
	}
	if s.options.Burst > 0 && !s.take(a.ID+" "+action) {
		return fail(http.StatusServiceUnavailable, "RequestLimitExceeded", "Request limit exceeded.")
	}
	for i := range s.faults {
		f := &s.faults[i]
		switch {
		case f.Action != action:
		case f.After > 0:
			f.After--
		case f.Times >= 0:
			if f.Times == 1 {
				f.Times = -1
			} else if f.Times > 1 {
				f.Times--
			}
			return fail(f.Status, f.Code, "%s", f.Message)
		}
	}
	s.calls[action]++
	return nil
}

func (s *Server) take(key string) bool {
	now := s.options.Now()
	b := s.buckets[key]
	if b == nil {
		b = &bucket{left: s.options.Burst, at: now}
		s.buckets[key] = b
	}
	if n := int(now.Sub(b.at) / s.options.Refill); n > 0 {
		b.left, b.at = min(s.options.Burst, b.left+n), b.at.Add(time.Duration(n)*s.options.Refill)
	}
	if b.left == 0 {
		return false
	}
	b.left--
	return true
}

// authenticate verifies the signature of a request to EC2.
func (s *Server) authenticate(r *http.Request, body []byte) (Account, string, *failure) {
	account, scope, refused := Verify(r, body, s.options.Now(), func(keyID string) (Account, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		a, ok := s.accounts[keyID]
		return a, ok
	})
	switch {
	case refused != nil:
		return Account{}, "", &failure{refused.Status, refused.Code, refused.Message}
	case scope.Service != "ec2":
		return Account{}, "", &failure{notValidated.Status, notValidated.Code, notValidated.Message}
	}
	return account, scope.Region, nil
}

// A page of a list: filters, size, and where it begins.
type page struct {
	filters []filter
	size    int
	from    int
	failure *failure
}

type filter struct {
	name   string
	values []string
}

func pageOf(q url.Values) page {
	p := page{size: maxResults}
	for i := 1; q.Has(fmt.Sprintf("Filter.%d.Name", i)); i++ {
		f := filter{name: q.Get(fmt.Sprintf("Filter.%d.Name", i))}
		for j := 1; q.Has(fmt.Sprintf("Filter.%d.Value.%d", i, j)); j++ {
			f.values = append(f.values, q.Get(fmt.Sprintf("Filter.%d.Value.%d", i, j)))
		}
		if len(f.values) > maxValues {
			p.failure = fail(http.StatusBadRequest, "FilterLimitExceeded", "The maximum number of filter values specified on a single call is %d", maxValues)
		}
		p.filters = append(p.filters, f)
	}
	if size := q.Get("MaxResults"); size != "" {
		n, err := strconv.Atoi(size)
		if err != nil || n < minResults || n > maxResults {
			p.failure = fail(http.StatusBadRequest, "InvalidParameterValue", "Value ( %s ) for parameter maxResults is invalid. Expecting a value between %d and %d.", size, minResults, maxResults)
		}
		p.size = n
	}
	if token := q.Get("NextToken"); token != "" {
		b, err := hex.DecodeString(token)
		if err == nil {
			p.from, err = strconv.Atoi(string(b))
		}
		if err != nil {
			p.failure = fail(http.StatusBadRequest, "InvalidParameterValue", "Unable to parse pagination token")
		}
	}
	return p
}

// of returns the items of a list that the filters select, and the token of the next page.
func of[T any](p page, items []T, values func(T, string) ([]string, bool)) ([]T, string, *failure) {
	var selected []T
	for _, item := range items {
		all := true
		for _, f := range p.filters {
			has, known := values(item, f.name)
			if !known {
				return nil, "", fail(http.StatusBadRequest, "InvalidParameterValue", "The filter '%s' is invalid", f.name)
			}
			all = all && slices.ContainsFunc(has, func(v string) bool { return slices.Contains(f.values, v) })
		}
		if all {
			selected = append(selected, item)
		}
	}
	from, to := min(p.from, len(selected)), min(p.from+p.size, len(selected))
	next := ""
	if to < len(selected) {
		next = hex.EncodeToString([]byte(strconv.Itoa(to)))
	}
	return selected[from:to], next, nil
}
