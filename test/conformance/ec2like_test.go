package conformance

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/kit"
)

// This file has the code that is common to the clouds whose API has the form of EC2: requests are forms, an instance has its
// tags from its creation on, and the metadata service requires the token of a session.

// ec2like is such a cloud. Its name is a prefix of the IDs of guests.
type ec2like struct {
	entry
	guests
	fake   ec2Fake
	server *httptest.Server
	// refusals are the error responses of the cloud, by class.
	refusals map[fn.ErrorCode]fakes.Fault
	// instances returns the instances that exist, and credentials the JSON of a key.
	instances   func() []ec2Instance
	credentials func(keyID, secret string) map[string]string
}

// An ec2Fake is the fake of such a cloud.
type ec2Fake interface {
	Break(f fakes.Fault) (mend func())
	Create(account, name string, tags map[string]string) string
	Lose(id string)
	SetConsole(id, text string)
	ConsoleReads(id string) int
}

// An ec2Instance is what the fakes show of an instance.
type ec2Instance struct {
	ID, Account string
	Tags        map[string]string
	UserData    []byte
	Reboots     []string
}

func (c *ec2like) Close() {
	if c.server != nil {
		c.server.Close()
	}
}

// ShowsInterruption returns true: the cloud announces that it takes back a spot instance.
func (*ec2like) ShowsInterruption() bool { return true }

// Leaks returns 0: the provider finds the instance by its tag.
func (*ec2like) Leaks() int { return 0 }

func (c *ec2like) guestOf(id string) string { return c.Provider() + "/" + id }

// newAccount returns an account with the name of the fleet, at an endpoint for instances and sessions.
func (c *ec2like) newAccount(t *testing.T, f kit.Fleet, region string) *ec2Account {
	t.Helper()
	a := &ec2Account{ec2like: c}
	a.liftedAccount = newLiftedAccount(t, f, c.Provider(), map[string]any{"region": region, "endpoint": c.server.URL, "stsEndpoint": c.server.URL})
	a.SetCredentials(t, CredentialsRight)
	return a
}

// keyOf returns the ID of the key of a fleet, and secretOf its secret.
func keyOf(fleet string) string    { return "key-of-" + fleet }
func secretOf(fleet string) string { return "secret-of-" + fleet }

// An ec2Account is an account at such a cloud.
type ec2Account struct {
	*ec2like
	*liftedAccount
}

func (a *ec2Account) VMs(context.Context) ([]VM, error) {
	var out []VM
	for _, i := range a.instances() {
		if i.Account == a.fleet.Namespace {
			out = append(out, VM{ID: i.ID, Tags: i.Tags, UserData: i.UserData})
		}
	}
	return out, nil
}

// isOurs matches the calls of the account.
func (a *ec2Account) isOurs(account string, _ []byte) bool { return account == a.fleet.Namespace }

func (a *ec2Account) Refuse(_ *testing.T, machine string, code fn.ErrorCode) {
	fault := a.refusals[code]
	fault.Call, fault.Match = "RunInstances", func(account string, body []byte) bool {
		return a.isOurs(account, body) && hasTag(body, machinev1alpha1.TagMachine, machine)
	}
	a.mend[machine] = a.fake.Break(fault)
}

// hasTag reports whether a form has a tag.
func hasTag(form []byte, key, value string) bool {
	params, err := url.ParseQuery(string(form))
	if err != nil {
		return false
	}
	for k := range params {
		if n, ok := strings.CutSuffix(k, ".Key"); ok && params.Get(k) == key && params.Get(n+".Value") == value {
			return true
		}
	}
	return false
}

// Lose deletes an instance, and its Node as the cloud-controller-manager does it.
func (a *ec2Account) Lose(t *testing.T, id string) {
	t.Helper()
	a.fake.Lose(id)
	a.deleteNode(t, a.guestOf(id))
}

func (a *ec2Account) SetCredentials(t *testing.T, c Credentials) {
	t.Helper()
	secret := secretOf(a.fleet.Namespace)
	if c == CredentialsWrong {
		secret = "not-the-secret-of-any-key"
	}
	a.setSecret(t, c, a.credentials(keyOf(a.fleet.Namespace), secret))
}

func (a *ec2Account) CreateVM(_ *testing.T, name string, tags map[string]string) string {
	return a.fake.Create(a.fleet.Namespace, name, tags)
}

// DieAtCreation kills the provider when the cloud has accepted the instance.
func (a *ec2Account) DieAtCreation(*testing.T) {
	a.fake.Break(fakes.Fault{Call: "RunInstances", Times: 1, Lost: true, Then: a.kill, Match: a.isOurs})
}

func (a *ec2Account) Throttle(*testing.T, string) (calls func() int, end func()) {
	n := &atomic.Int64{}
	end = a.fake.Break(a.throttled(a.refusals[fn.ErrorThrottled], n))
	return func() int { return int(n.Load()) }, end
}

func (a *ec2Account) Write(id, line string) { a.fake.SetConsole(id, line+"\n") }

func (a *ec2Account) ConsoleReads(_ context.Context, id string) (int, error) {
	return a.fake.ConsoleReads(id), nil
}

func (*ec2Account) CanInterrupt() bool { return true }

func (a *ec2Account) Reboots(_ context.Context, id string) ([]machinev1alpha1.RebootMode, error) {
	all := a.instances()
	i := slices.IndexFunc(all, func(i ec2Instance) bool { return i.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("there is no instance %s", id)
	}
	return modesOf(all[i].Reboots), nil
}

// sessionMetadata is the metadata service of an instance that requires the token of a session, as the classes of the examples
// request it. header is the prefix of its headers, and refusal the status of a request without the token.
func sessionMetadata(id, header string, refusal int, texts map[string]string) http.Handler {
	token := "token-of-" + id
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := texts[r.URL.Path]
		switch {
		case r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut && r.Header.Get(header+"-token-ttl-seconds") != "":
			_, _ = fmt.Fprint(w, token)
		case !ok:
			http.NotFound(w, r)
		case r.Header.Get(header+"-token") != token:
			http.Error(w, http.StatusText(refusal), refusal)
		default:
			_, _ = fmt.Fprint(w, text)
		}
	})
}
