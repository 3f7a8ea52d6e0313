package aws

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/fakes/awstest"
)

// A failure is an error response.
type failure struct {
	status        int
	code, message string
}

func fail(status int, code, format string, args ...any) *failure {
	return &failure{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

func bad(code, format string, args ...any) *failure {
	return fail(http.StatusBadRequest, code, format, args...)
}

func missing(param string) *failure {
	return bad("MissingParameter", "The request must contain the parameter %s", param)
}

// A call is an authenticated request.
type call struct {
	*Cloud
	now  time.Time
	key  *key
	form url.Values
}

// A service is an API.
type service struct {
	name, namespace string
	// anonymous are the actions without a signature.
	anonymous []string
	actions   map[string]func(*call) ([]node, *failure)
}

// services by version.
var services = map[string]service{
	"2016-11-15": {name: "ec2", namespace: "http://ec2.amazonaws.com/doc/2016-11-15/", actions: map[string]func(*call) ([]node, *failure){
		"RunInstances": (*call).runInstances, "TerminateInstances": (*call).terminateInstances, "StartInstances": (*call).startInstances,
		"RebootInstances": (*call).rebootInstances, "DescribeInstances": (*call).describeInstances, "DescribeImages": (*call).describeImages,
		"DescribeVolumes": (*call).describeVolumes, "DescribeNetworkInterfaces": (*call).describeNetworkInterfaces, "DescribeAddresses": (*call).describeAddresses,
		"DescribeSpotInstanceRequests": (*call).describeSpotInstanceRequests, "GetConsoleOutput": (*call).getConsoleOutput,
		"ModifyNetworkInterfaceAttribute": (*call).modifyNetworkInterfaceAttribute,
	}},
	"2011-06-15": {
		name: "sts", namespace: "https://sts.amazonaws.com/doc/2011-06-15/", anonymous: []string{"AssumeRoleWithWebIdentity"},
		actions: map[string]func(*call) ([]node, *failure){
			"GetCallerIdentity": (*call).getCallerIdentity, "AssumeRole": (*call).assumeRole, "AssumeRoleWithWebIdentity": (*call).assumeRoleWithWebIdentity,
		},
	},
}

// limits of actions: the calls that an account may make at once, and per second. The page "Request throttling for the Amazon EC2
// API" has them for the actions of EC2; the others are those of its categories.
var limits = map[string]struct {
	burst  int
	refill time.Duration
}{
	"RunInstances": {5, time.Second / 2}, "StartInstances": {5, time.Second / 2}, "TerminateInstances": {100, time.Second / 5},
	"RebootInstances": {50, time.Second / 5}, "ModifyNetworkInterfaceAttribute": {50, time.Second / 5},
	"DescribeInstances": {100, time.Second / 20}, "DescribeImages": {100, time.Second / 20}, "DescribeVolumes": {100, time.Second / 20},
	"DescribeNetworkInterfaces": {100, time.Second / 20}, "DescribeAddresses": {100, time.Second / 20}, "DescribeSpotInstanceRequests": {100, time.Second / 20},
	"GetConsoleOutput": {100, time.Second / 20},
}

// ServeHTTP responds to a request.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		form = url.Values{}
	}
	api, name := services[form.Get("Version")], form.Get("Action")
	c.Note(name)
	f := c.Of(name, c.accountOf(r), body)
	if f != nil && f.Refused {
		panic(http.ErrAbortHandler)
	}
	if f != nil && !f.Lost {
		respond(w, api, name, nil, &failure{status: f.Status, code: f.Code, message: f.Message})
		return
	}
	out, problem := c.serve(r, api, name, form, body)
	if f != nil {
		f.Done()
		panic(http.ErrAbortHandler)
	}
	respond(w, api, name, out, problem)
}

// accountOf returns the account of the key in a request.
func (c *Cloud) accountOf(r *http.Request) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, after, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	id, _, _ := strings.Cut(after, "/")
	if k := c.keys[id]; k != nil {
		return k.Account
	}
	return ""
}

const requestID = "59dbff89-35bd-4eac-99ed-be587EXAMPLE"

func respond(w http.ResponseWriter, api service, action string, out []node, f *failure) {
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.Header().Set("x-amzn-RequestId", requestID)
	answer, namespace := node{}, api.namespace
	switch {
	case f != nil && api.name == "sts":
		kind := "Sender"
		if f.status >= http.StatusInternalServerError {
			kind = "Receiver"
		}
		answer = with("ErrorResponse", with("Error", text("Type", kind), text("Code", f.code), text("Message", f.message)), text("RequestId", requestID))
	case f != nil:
		answer = with("Response", with("Errors", with("Error", text("Code", f.code), text("Message", f.message))), text("RequestID", requestID))
		namespace = ""
	case api.name == "sts":
		answer = with(action+"Response", with(action+"Result", out...), with("ResponseMetadata", text("RequestId", requestID)))
	default:
		answer = with(action+"Response", append([]node{text("requestId", requestID)}, out...)...)
	}
	if f != nil {
		w.WriteHeader(f.status)
	}
	_, _ = io.WriteString(w, answer.document(namespace))
}

// serve authenticates a call and carries it out.
func (c *Cloud) serve(r *http.Request, api service, name string, form url.Values, body []byte) ([]node, *failure) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Release()
	c.settle(now)
	do, ok := api.actions[name]
	if !ok && c.opts.Others && api.name == "ec2" {
		do, ok = others[name]
	}
	if !ok || r.URL.Path != "/" {
		return nil, bad("InvalidAction", "The action %s is not valid for this web service.", name)
	}
	if slices.Contains(api.anonymous, name) {
		return do(&call{Cloud: c, now: now, form: form})
	}
	_, scope, refused := awstest.Verify(r, body, now, c.known(now))
	if refused != nil {
		if api.name == "sts" && refused.Code == "AuthFailure" {
			return nil, fail(http.StatusForbidden, "InvalidClientTokenId", "The security token included in the request is invalid.")
		}
		return nil, &failure{refused.Status, refused.Code, refused.Message}
	}
	if scope.Service != api.name || scope.Region != c.opts.Region {
		return nil, fail(http.StatusForbidden, "SignatureDoesNotMatch", "Credential should be scoped to a valid region and service.")
	}
	k := c.keys[scope.KeyID]
	if now.Before(c.denies) || !c.admits(k.Account, name, now) {
		if api.name == "sts" {
			return nil, bad("Throttling", "Rate exceeded")
		}
		return nil, fail(http.StatusServiceUnavailable, "RequestLimitExceeded", "Request limit exceeded.")
	}
	if slices.Contains(k.Denied, name) {
		return nil, fail(http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation. User: arn:aws:iam::%s:user/drover is not authorized to perform: ec2:%s because no identity-based policy allows the ec2:%s action. Encoded authorization failure message: 4GkN-EXAMPLE", k.Account, name, name)
	}
	return do(&call{Cloud: c, now: now, key: k, form: form})
}

// admits takes one call from the bucket of an account and an action.
func (c *Cloud) admits(account, action string, now time.Time) bool {
	limit, ok := limits[action]
	if !c.opts.Limited || !ok {
		return true
	}
	b := c.buckets[account+" "+action]
	if b == nil {
		b = &fakes.Bucket{}
		c.buckets[account+" "+action] = b
	}
	admitted, _, _ := b.Take(now, limit.burst, limit.refill)
	return admitted
}
