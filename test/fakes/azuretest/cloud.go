package azuretest

import (
	"crypto/rsa"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/test/fakes"
)

// Options of a cloud.
type Options struct {
	State State
	// Tenant and Subscription, both UUIDs.
	Tenant, Subscription string
	// PageSize is the most rows of a page. Default: 1000, as of Azure.
	PageSize int
	// Quota of queries per identity in a Window. Azure has 15 in 5 seconds. Default: no limit.
	Quota  int
	Window time.Duration
	// Cut makes Resource Graph cut an answer off after so many rows, without a next page.
	// Default: it does not.
	Cut int
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Reader are the actions of the built-in role of this name.
var Reader = []string{"*/read"}

// An Assignment of a role.
type Assignment struct {
	// ResourceGroup that it counts in. Default: the whole subscription.
	ResourceGroup string
	Actions       []string
	NotActions    []string
}

// A Cloud is a tenant of Entra ID with one subscription.
type Cloud struct {
	fakes.Faults
	fakes.Count
	opts Options

	mu         sync.Mutex
	identities map[string]*identity
	tokens     map[string]token
	machine    string // the client ID of the machine's identity
}

// identity is a service principal, by its client ID.
type identity struct {
	object      string
	secrets     []string
	federations []federation
	certified   []*rsa.PublicKey
	assignments []Assignment
	// used queries since the window began.
	used  int
	began time.Time
}

type token struct {
	client  string
	expires time.Time
}

// tokenLife of all tokens.
const tokenLife = time.Hour

// New makes a cloud.
func New(o Options) *Cloud {
	if o.PageSize == 0 {
		o.PageSize = maxPage
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Cloud{opts: o, identities: map[string]*identity{}, tokens: map[string]token{}}
}

func (c *Cloud) identity(client string) *identity {
	if c.identities[client] == nil {
		c.identities[client] = &identity{object: uuid.NewString()}
	}
	return c.identities[client]
}

// Assign roles to an identity, in place of those that it has.
func (c *Cloud) Assign(client string, a ...Assignment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.identity(client).assignments = a
}

// NewSecret gives an identity one more client secret.
func (c *Cloud) NewSecret(client string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, secret := c.identity(client), "8Q~"+uuid.NewString()
	i.secrets = append(i.secrets, secret)
	return secret
}

// Revoke a client secret, and end the tokens of the identity. (At Azure they live on for up to
// an hour.)
func (c *Cloud) Revoke(client, secret string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.identity(client)
	i.secrets = slices.DeleteFunc(i.secrets, func(s string) bool { return s == secret })
	for text, t := range c.tokens {
		if t.client == client {
			delete(c.tokens, text)
		}
	}
}

// SetMachineIdentity gives the machine that a caller runs on a managed identity.
func (c *Cloud) SetMachineIdentity(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.identity(client)
	c.machine = client
}

// Credentials are the JSON of a Secret, for a cloud that answers at a URL.
func (c *Cloud) Credentials(client, secret, at string) []byte {
	b, err := json.Marshal(map[string]string{
		"clientId": client, "clientSecret": secret, "tenantId": c.opts.Tenant, "subscriptionId": c.opts.Subscription,
		"activeDirectoryEndpointUrl": at, "resourceManagerEndpointUrl": at,
	})
	if err != nil {
		panic(err)
	}
	return b
}

var tenantPath = regexp.MustCompile(`^/([^/]+)(/v2\.0/\.well-known/openid-configuration|/oauth2/v2\.0/token)$`)

// ServeHTTP answers for Entra ID, Azure Resource Manager and a machine's metadata service: their
// paths differ.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := r.Method + " " + r.URL.Path
	tenant := tenantPath.FindStringSubmatch(r.URL.Path)
	if tenant != nil {
		call = r.Method + " " + tenant[2]
	}
	c.Note(call)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fail(w, http.StatusBadRequest, "InvalidRequestContent", err.Error())
		return
	}
	if f := c.Of(call, c.opts.Subscription, body); f != nil {
		faulty(w, f)
		return
	}
	switch call {
	case "GET /v2.0/.well-known/openid-configuration":
		c.openID(w, r, tenant[1])
	case "POST /oauth2/v2.0/token":
		c.token(w, r, tenant[1], body)
	case "GET /metadata/identity/oauth2/token":
		c.machineToken(w, r)
	case Query:
		c.resources(w, r, body)
	case "GET /subscriptions/" + c.opts.Subscription + "/providers/Microsoft.Authorization/permissions":
		c.permissions(w, r)
	default:
		fail(w, http.StatusNotFound, "InvalidResourceType", "The resource type could not be found in the namespace for api version '"+r.URL.Query().Get("api-version")+"'.")
	}
}

// Query is the call of Resource Graph.
const Query = "POST /providers/Microsoft.ResourceGraph/resources"

// Permissions is the call that lists permissions at a subscription.
func Permissions(subscription string) string {
	return "GET /subscriptions/" + subscription + "/providers/Microsoft.Authorization/permissions"
}

// faulty answers with a fault.
func faulty(w http.ResponseWriter, f *fakes.Fault) {
	if f.Lost || f.Refused {
		panic(http.ErrAbortHandler)
	}
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	fail(w, f.Status, f.Code, f.Message)
}

// Transport calls the cloud without a server.
func (c *Cloud) Transport() http.RoundTripper { return fakes.InMemory(c) }

func bearer(r *http.Request) string {
	text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return text
}
