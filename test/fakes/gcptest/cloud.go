package gcptest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-dev/drover/test/fakes"
)

// Options of a cloud.
type Options struct {
	State   State
	Project string
	// Zones that the project has beside those of its VMs. Default: three of europe-west4.
	Zones []string
	// Regions that the project has. Default: europe-west4.
	Regions []string
	// PageSize is the most entries of a page. Default: 500, as of the Compute API.
	PageSize int
	// RateLimit is how many calls of the Compute API may be made at once. After each Refill, one
	// more may be made. Default: no limit.
	RateLimit int
	Refill    time.Duration
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Viewer are the permissions that a service account needs for the lists of the fake.
var Viewer = []string{"compute.instances.list", "compute.disks.list", "compute.addresses.list"}

// A Cloud is a project.
type Cloud struct {
	fakes.Faults
	fakes.Count
	opts Options

	mu        sync.Mutex
	accounts  map[string]*account
	tokens    map[string]token
	machine   string            // the e-mail address of the machine's service account
	federated map[string]string // service accounts by the tokens of another identity provider
	silent    map[string]bool
	bucket    fakes.Bucket
	made      int // number of keys
}

// account of a service, by its e-mail address.
type account struct {
	keys        map[string]publicKey
	permissions []string
}

type token struct {
	email   string
	scopes  []string
	expires time.Time
}

// tokenLife of all tokens.
const tokenLife = time.Hour

// maxPage is the most that the Compute API lists at once.
const maxPage = 500

// New makes a cloud.
func New(o Options) *Cloud {
	if o.PageSize == 0 {
		o.PageSize = maxPage
	}
	if o.Zones == nil {
		o.Zones = []string{"europe-west4-a", "europe-west4-b", "europe-west4-c"}
	}
	if o.Regions == nil {
		o.Regions = []string{"europe-west4"}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Cloud{opts: o, accounts: map[string]*account{}, tokens: map[string]token{}, federated: map[string]string{}, silent: map[string]bool{}}
}

func (c *Cloud) account(email string) *account {
	if c.accounts[email] == nil {
		c.accounts[email] = &account{keys: map[string]publicKey{}}
	}
	return c.accounts[email]
}

// Grant a service account permissions in the project, in place of those that it has.
func (c *Cloud) Grant(email string, permissions ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.account(email).permissions = permissions
}

// SetMachineAccount gives the machine that a caller runs on a service account.
func (c *Cloud) SetMachineAccount(email string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.account(email)
	c.machine = email
}

// Silence makes scopes, such as zones/europe-west4-a, not answer. All other scopes answer.
func (c *Cloud) Silence(scopes ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = map[string]bool{}
	for _, s := range scopes {
		c.silent[s] = true
	}
}

// TokenCall is the call that exchanges a signed assertion for a token, as faults and counts name it.
const TokenCall = "POST /token"

// FederationCall is the call that exchanges the token of another identity provider.
const FederationCall = "POST /v1/token"

// Federate gives the bearer of a token of another identity provider a service account, as workload identity federation
// does it.
func (c *Cloud) Federate(token, email string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.federated[token] = email
}

// ListCall of a collection: instances, disks or addresses.
func (c *Cloud) ListCall(collection string) string {
	return "GET /compute/v1/projects/" + c.opts.Project + "/aggregated/" + collection
}

// ServeHTTP answers for the token endpoint, the Compute API and a machine's metadata server:
// their paths differ.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := r.Method + " " + r.URL.Path
	c.Note(call)
	if f := c.Of(call, c.opts.Project, []byte(r.URL.RawQuery)); f != nil {
		faulty(w, f)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/computeMetadata/") {
		c.metadata(w, r)
		return
	}
	collection, found := strings.CutPrefix(call, c.ListCall(""))
	switch {
	case call == TokenCall:
		c.exchange(w, r)
	case call == FederationCall:
		c.federate(w, r)
	case found && slices.Contains([]string{instance, Disk, Address}, collection):
		c.list(w, r, collection)
	default:
		c.missing(w, r)
	}
}

// faulty answers with a fault.
func faulty(w http.ResponseWriter, f *fakes.Fault) {
	if f.Lost || f.Refused {
		panic(http.ErrAbortHandler)
	}
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	fail(w, f.Status, f.Code, "global", f.Message)
}

// statuses of errors: https://cloud.google.com/apis/design/errors#error_model.
var statuses = map[int]string{
	http.StatusBadRequest: "INVALID_ARGUMENT", http.StatusUnauthorized: "UNAUTHENTICATED", http.StatusForbidden: "PERMISSION_DENIED",
	http.StatusNotFound: "NOT_FOUND", http.StatusConflict: "ALREADY_EXISTS", http.StatusTooManyRequests: "RESOURCE_EXHAUSTED", http.StatusServiceUnavailable: "UNAVAILABLE",
}

// Fail answers as the Compute API does. The domain is "global", or "usageLimits" of a limit.
func Fail(w http.ResponseWriter, status int, reason, domain, message string) {
	fail(w, status, reason, domain, message)
}

// fail as the Compute API does: https://cloud.google.com/compute/docs/reference/rest/v1#errors and
// https://cloud.google.com/storage/docs/json_api/v1/status-codes for the older form of it.
func fail(w http.ResponseWriter, status int, reason, domain, message string) {
	e := map[string]any{"code": status, "message": message, "errors": []any{map[string]any{"message": message, "domain": domain, "reason": reason}}}
	if s := statuses[status]; s != "" {
		e["status"] = s
	}
	fakes.AnswerJSON(w, status, map[string]any{"error": e})
}

// Transport calls the cloud without a server.
func (c *Cloud) Transport() http.RoundTripper { return fakes.InMemory(c) }

func itoa(n int) string { return strconv.Itoa(n) }
