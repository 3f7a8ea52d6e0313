package alibaba

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/drover-dev/drover/test/fakes"
)

// A failure is an error response.
type failure struct {
	status        int
	code, message string
}

func fail(status int, code, format string, args ...any) *failure {
	return &failure{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

func missing(param string) *failure {
	return fail(http.StatusBadRequest, "MissingParameter", "The input parameter \"%s\" that is mandatory for processing this request is not supplied.", param)
}

// A call is an authenticated request.
type call struct {
	*Cloud
	now    time.Time
	key    *key
	params map[string]string
}

// An action carries out a call.
type action func(*call) (map[string]any, *failure)

// actions by version and name.
var actions = map[string]map[string]action{
	"2014-05-26": {
		"RunInstances": (*call).runInstances, "StartInstance": (*call).startInstance, "RebootInstance": (*call).rebootInstance,
		"DeleteInstance":    (*call).deleteInstance,
		"DescribeInstances": (*call).describeInstances, "DescribeInstanceAttribute": (*call).describeInstanceAttribute,
		"DescribeDisks": (*call).describeDisks, "DescribeImages": (*call).describeImages, "DescribeInstanceTypes": (*call).describeInstanceTypes,
		"GetInstanceConsoleOutput": (*call).getInstanceConsoleOutput,
	},
	"2015-04-01": {"GetCallerIdentity": (*call).getCallerIdentity, "AssumeRole": (*call).assumeRole},
}

// ServeHTTP responds to a request.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := fakes.BodyOf(r)
	name := r.Header.Get("x-acs-action")
	c.Serve(name, c.accountOf(r), body, func(f *fakes.Fault) {
		respond(w, nil, &failure{status: f.Status, code: f.Code, message: f.Message})
	}, func() func() {
		out, problem := c.serve(r, name, body)
		return func() { respond(w, out, problem) }
	})
}

// accountOf returns the account of the key in a request.
func (c *Cloud) accountOf(r *http.Request) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.keys[accessKeyOf(r)]; k != nil {
		return k.Account
	}
	return ""
}

const requestID = "473469C7-AA6F-4DC5-B3DB-A3DC0DE3C83E"

func respond(w http.ResponseWriter, out map[string]any, f *failure) {
	if f != nil {
		fakes.AnswerJSON(w, f.status, map[string]any{
			"RequestId": requestID, "HostId": "ecs.aliyuncs.com", "Code": f.code, "Message": f.message,
			"Recommend": "https://api.aliyun.com/troubleshoot?q=" + url.QueryEscape(f.code),
		})
		return
	}
	out["RequestId"] = requestID
	fakes.AnswerJSON(w, http.StatusOK, out)
}

// serve authenticates a call and carries it out.
func (c *Cloud) serve(r *http.Request, name string, body []byte) (map[string]any, *failure) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Release()
	c.settle(now)
	do, ok := actions[r.Header.Get("x-acs-version")][name]
	if !ok || r.URL.Path != "/" {
		return nil, fail(http.StatusNotFound, "InvalidAction.NotFound", "Specified api is not found, please check your url and method.")
	}
	k, problem := c.authenticate(r, body, now)
	if problem != nil {
		return nil, problem
	}
	if !c.Admits(now, 0, 0) || !c.admits(k.Account, now) {
		return nil, fail(http.StatusBadRequest, "Throttling.User", "Request was denied due to user flow control.")
	}
	if slices.Contains(k.Denied, name) {
		return nil, fail(http.StatusForbidden, "Forbidden.RAM", "User not authorized to operate on the specified resource, or this API doesn't support RAM.")
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fail(http.StatusBadRequest, "InvalidParameter", "The request body is not a form.")
	}
	params := map[string]string{}
	for _, values := range []url.Values{r.URL.Query(), form} {
		for p := range values {
			params[p] = values.Get(p)
		}
	}
	return do(&call{Cloud: c, now: now, key: k, params: params})
}

// admits takes one call from the bucket of an account.
func (c *Cloud) admits(account string, now time.Time) bool {
	if c.opts.RateLimit == 0 {
		return true
	}
	b := c.buckets[account]
	if b == nil {
		b = &fakes.Bucket{}
		c.buckets[account] = b
	}
	ok, _, _ := b.Take(now, c.opts.RateLimit, c.opts.Refill)
	return ok
}
