package azure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	computefake "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7/fake"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7"
	networkfake "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7/fake"
	"github.com/google/uuid"

	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/fakes/azuremodel"
	"github.com/drover-dev/drover/test/fakes/azuretest"
)

// blobs begins the paths of consoles. A storage account has another host than Azure Resource Manager.
const blobs = "/bootdiagnostics/"

// A doer is one of Microsoft's fake servers.
type doer interface {
	Do(req *http.Request) (*http.Response, error)
}

// A session is a list of which further pages exist.
type session struct {
	server doer
	method string
}

// An operation is a call of Azure Resource Manager.
type operation struct {
	// name is that of the fake, and method that of the SDK.
	name, method string
	action       string
	// isList means that the call lists the subscription.
	isList bool
	// into returns the type of the body, or nil if there is none.
	into func() any
}

// target matches the path of a call: the resource group, the namespace, the type, the name and the action.
var target = regexp.MustCompile(`^/subscriptions/([^/]+)(?:/resourceGroups/([^/]+))?/providers/(Microsoft\.(?:Compute|Network))/([A-Za-z]+)(?:/([^/]+))?(?:/([A-Za-z]+))?$`)

// page matches the end of the path of a further page.
var page = regexp.MustCompile(`/fake_page_[0-9]+$`)

// clients are the names of the clients of the SDK, and calls those of the fake, by the type of the resource.
var clients = map[string][2]string{
	"virtualMachines":   {"VirtualMachinesClient", "VirtualMachines"},
	"disks":             {"DisksClient", "Disks"},
	"networkInterfaces": {"InterfacesClient", "Interfaces"},
	"publicIPAddresses": {"PublicIPAddressesClient", "PublicIPAddresses"},
}

// actions on VMs.
var actions = map[string]string{"start": "BeginStart", "restart": "BeginRestart", "redeploy": "BeginRedeploy", "retrieveBootDiagnosticsData": "RetrieveBootDiagnosticsData"}

// operationOf returns the operation of a request, and its resource group.
func operationOf(r *http.Request, path string) (operation, string, bool) {
	m := target.FindStringSubmatch(path)
	if m == nil {
		return operation{}, "", false
	}
	group, namespace, typ, name, verb := m[2], m[3], m[4], m[5], m[6]
	names, ok := clients[typ]
	if !ok {
		return operation{}, "", false
	}
	of := func(method, call, right string) operation {
		return operation{name: names[1] + "." + call, method: names[0] + "." + method, action: namespace + "/" + typ + "/" + right}
	}
	switch {
	case r.Method == http.MethodPut && verb == "" && name != "":
		o := of("BeginCreateOrUpdate", "CreateOrUpdate", "write")
		o.into = bodies[typ]
		return o, group, o.into != nil
	case r.Method == http.MethodDelete && verb == "" && name != "":
		return of("BeginDelete", "Delete", "delete"), group, true
	case r.Method == http.MethodGet && verb == "" && name != "":
		return of("Get", "Get", "read"), group, true
	case r.Method == http.MethodGet && name == "" && group == "":
		o := of("NewListAllPager", "ListAll", "read")
		if typ == "disks" {
			o = of("NewListPager", "List", "read")
		}
		o.isList = true
		if r.URL.Query().Get("statusOnly") == "true" {
			o.name += "(statusOnly)"
		}
		return o, group, true
	case r.Method == http.MethodPost && typ == "virtualMachines" && actions[verb] != "":
		return of(actions[verb], strings.TrimPrefix(actions[verb], "Begin"), verb+"/action"), group, true
	}
	return operation{}, "", false
}

// bodies are the types of bodies.
var bodies = map[string]func() any{
	"virtualMachines":   func() any { return &armcompute.VirtualMachine{} },
	"networkInterfaces": func() any { return &armnetwork.Interface{} },
	"publicIPAddresses": func() any { return &armnetwork.PublicIPAddress{} },
}

// ServeHTTP answers for Azure Resource Manager, storage accounts and Entra ID: their paths differ.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := fakes.BodyOf(r)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if strings.HasPrefix(r.URL.Path, blobs) {
		c.serve(w, ReadBlob, body, func(w http.ResponseWriter) { c.blob(w, r) })
		return
	}
	path := page.ReplaceAllString(r.URL.Path, "")
	o, group, ok := operationOf(r, path)
	if !ok {
		if strings.HasPrefix(path, "/subscriptions/") || strings.HasPrefix(path, "/providers/") {
			if c.isThrottled(w) {
				return
			}
		}
		c.identities.ServeHTTP(w, r)
		return
	}
	c.serve(w, o.name, body, func(w http.ResponseWriter) {
		if !c.isThrottled(w) {
			c.answer(w, r, o, group, body)
		}
	})
}

// serve answers a call, unless a fault prevents that.
func (c *Cloud) serve(w http.ResponseWriter, name string, body []byte, do func(http.ResponseWriter)) {
	c.Note(name)
	fault := c.Of(name, c.opts.Subscription, body)
	switch {
	case fault == nil:
		do(w)
	case fault.Refused:
		panic(http.ErrAbortHandler)
	case fault.Lost:
		do(httptest.NewRecorder())
		fault.Done()
		panic(http.ErrAbortHandler)
	default:
		if fault.RetryAfter != "" {
			w.Header().Set("Retry-After", fault.RetryAfter)
		}
		azuretest.Fail(w, fault.Status, fault.Code, fault.Message)
	}
}

// retryAfter is the pause that Azure Resource Manager demands, in seconds.
const retryAfter = 7

func (c *Cloud) isThrottled(w http.ResponseWriter) bool {
	if c.limit.Admits(time.Now(), c.opts.RateLimit, c.opts.Refill) {
		return false
	}
	w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	w.Header().Set("x-ms-ratelimit-remaining-subscription-reads", "0")
	azuretest.Fail(w, http.StatusTooManyRequests, "SubscriptionRequestsThrottled", fmt.Sprintf("Number of requests for subscription '%s' exceeded the limit for time interval '00:00:01'. Please try again after '%d' seconds.", c.opts.Subscription, retryAfter))
	return true
}

// joins are the rights that a creation needs for resources that it refers to, by the name of the call.
var joins = map[string][]string{
	"Interfaces.CreateOrUpdate": {"Microsoft.Network/virtualNetworks/subnets/join/action"},
	CreateVM:                    {"Microsoft.Network/networkInterfaces/join/action", "Microsoft.Compute/disks/write"},
}

// answer answers a call by Microsoft's fake server.
func (c *Cloud) answer(w http.ResponseWriter, r *http.Request, o operation, group string, body []byte) {
	visible := func(string) bool { return true }
	if o.isList {
		if visible = c.Visible(w, r, o.action); visible == nil {
			return
		}
	} else if !c.Authorize(w, r, o.action, group) {
		return
	}
	for _, right := range joins[o.name] {
		recorded := httptest.NewRecorder()
		if !c.Authorize(recorded, r, right, "") && !c.Authorize(httptest.NewRecorder(), r, right, group) {
			azuretest.Fail(w, http.StatusForbidden, "LinkedAuthorizationFailed", fmt.Sprintf("The client has permission to perform action '%s' on scope '%s'; however, it does not have permission to perform action '%s' on the linked scope(s) or the linked scope(s) are invalid.", o.action, r.URL.Path, right))
			return
		}
	}
	if o.into != nil {
		if err := c.modelOf(o).Check(body, o.into()); err != nil {
			c.opts.Report(fmt.Errorf("%s: %w", o.name, err))
			azuretest.Fail(w, http.StatusBadRequest, "InvalidRequestContent", err.Error())
			return
		}
	}
	if len(body) > 0 && o.into == nil {
		c.opts.Report(fmt.Errorf("%s: it has a body, and the call has none", o.name))
	}
	c.forward(w, r, o, visible, body)
}

func (c *Cloud) modelOf(o operation) *azuremodel.Model {
	if strings.HasPrefix(o.action, "Microsoft.Network/") {
		return c.network
	}
	return c.compute
}

// forward has Microsoft's fake server answer.
func (c *Cloud) forward(w http.ResponseWriter, r *http.Request, o operation, visible func(string) bool, body []byte) {
	// The fake server expects the request of a client.
	req := r.Clone(context.WithValue(r.Context(), runtime.CtxAPINameKey{}, o.method))
	req.Body = io.NopCloser(bytes.NewReader(body))
	req.URL.Scheme, req.URL.Host = "https", r.Host
	query := req.URL.Query()
	id := query.Get("session")
	query.Del("session")
	req.URL.RawQuery = query.Encode()

	c.mu.Lock()
	defer c.mu.Release()
	c.settle(time.Now())
	s := c.sessions[id]
	if s == nil {
		id = uuid.NewString()
		s = &session{server: c.serverOf(o, r.Host, visible, body), method: o.method}
	}
	resp, err := s.server.Do(req)
	if err != nil {
		c.fail(w, err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		c.fail(w, err)
		return
	}
	delete(c.sessions, id)
	if next, changed := nextPage(answer, id); changed {
		answer, c.sessions[id] = next, s
	}
	if resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusCreated {
		w.Header().Set("Azure-AsyncOperation", "https://"+r.Host+"/subscriptions/"+c.opts.Subscription+"/providers/Microsoft.Compute/locations/"+Location+"/operations/"+uuid.NewString()+"?api-version=2025-04-01")
		w.Header().Set("Location", "https://"+r.Host+r.URL.Path)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(resp.StatusCode)
	if resp.StatusCode != http.StatusNoContent && resp.StatusCode != http.StatusAccepted {
		_, _ = w.Write(answer)
	}
}

// nextPage adds the session to the link to the next page of a list, if there is one.
func nextPage(answer []byte, session string) ([]byte, bool) {
	var list map[string]json.RawMessage
	var link string
	if json.Unmarshal(answer, &list) != nil || json.Unmarshal(list["nextLink"], &link) != nil || link == "" {
		return nil, false
	}
	text, err := json.Marshal(link + "&session=" + session)
	if err != nil {
		panic(err)
	}
	list["nextLink"] = text
	out, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return out, true
}

// serverOf returns the fake server of one call: it keeps the state of an operation, and the cloud has a state of its own.
func (c *Cloud) serverOf(o operation, host string, visible func(string) bool, body []byte) doer {
	switch client, _, _ := strings.Cut(o.method, "."); client {
	case "VirtualMachinesClient":
		return computefake.NewVirtualMachinesServerTransport(c.computeOf(host, visible, body))
	case "DisksClient":
		return computefake.NewDisksServerTransport(c.disksOf(visible))
	case "InterfacesClient":
		return networkfake.NewInterfacesServerTransport(c.interfacesOf(visible))
	default:
		return networkfake.NewPublicIPAddressesServerTransport(c.addressesOf(visible))
	}
}

// fail answers with the refusal of a call. Any other error is a mistake of the fake or of the request.
func (c *Cloud) fail(w http.ResponseWriter, err error) {
	var r *refusal
	if errors.As(err, &r) {
		azuretest.Fail(w, r.status, r.code, r.message)
		return
	}
	c.opts.Report(err)
	azuretest.Fail(w, http.StatusBadRequest, "InvalidRequestContent", err.Error())
}

// blob answers with the console of a VM. The URL has the right to read it.
func (c *Cloud) blob(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Release()
	id := strings.TrimPrefix(r.URL.Path, blobs)
	if r.Header.Get("Authorization") != "" {
		c.opts.Report(errors.New("a call to a storage account has the token of Azure Resource Manager"))
	}
	for _, v := range c.vms {
		if v.id == id && r.URL.Query().Get("sig") == signature(id) {
			v.reads++
			_, _ = io.WriteString(w, v.console)
			return
		}
	}
	http.Error(w, "AuthenticationFailed", http.StatusForbidden)
}
