package openstack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/gophercloud/gophercloud/v2"
	cloud "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/terraform-provider-openstack/terraform-provider-openstack/v3/openstack"
	"github.com/terraform-provider-openstack/utils/v2/auth"
	"github.com/terraform-provider-openstack/utils/v2/mutexkv"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/cloud/trust"
	"github.com/drover-dev/drover/internal/lift"
	"github.com/drover-dev/drover/internal/ratelimit"
)

const (
	// answerTimeout is the timeout of a call that the cloud does not answer.
	answerTimeout = time.Minute
	// refusedFor is how long a refused login is not retried with the same credentials: a cloud may
	// lock an account after several attempts.
	refusedFor = 30 * time.Second
)

// projectKey identifies a project and the account that accesses it.
type projectKey struct {
	authURL, region, ca string
	credentials         credentials
}

// projects has one client per project.
type projects struct {
	kube client.Reader
	// transport returns the transport of a project, with the CA bundle.
	transport func(ca string) (http.RoundTripper, error)
	known     lift.Accounts[projectKey, *project]
	faults    faults
}

func newProjects(c client.Reader) *projects { return &projects{kube: c, transport: transport} }

func transport(ca string) (http.RoundTripper, error) {
	t, err := trust.Transport([]byte(ca), answerTimeout)
	if err != nil {
		// Nothing but the bundle can be wrong.
		return nil, errors.New("spec.caBundle of the provider config: must be certificates in PEM")
	}
	return t, nil
}

// of returns the project that mg's provider config names, logged in.
func (p *projects) of(ctx context.Context, mg resource.ModernManaged) (*project, error) {
	key, err := findProject(ctx, p.kube, mg)
	if err != nil {
		return nil, err
	}
	project, err := p.known.Get(key, func() (*project, error) {
		t, err := p.transport(key.ca)
		if err != nil {
			return nil, err
		}
		return newProject(key, t, &p.faults)
	})
	if err != nil {
		return nil, err
	}
	return project, project.login(ctx)
}

// A project of an OpenStack, as one account sees it.
type project struct {
	key    projectKey
	client *gophercloud.ProviderClient
	// hasShown reports whether the account has returned a server, a port or a floating IP that was requested by
	// its ID.
	hasShown atomic.Bool

	mu       sync.Mutex
	loggedIn bool
	refused  error
	at       time.Time // of refused
}

func newProject(key projectKey, t http.RoundTripper, f *faults) (*project, error) {
	c, err := cloud.NewClient(key.authURL)
	if err != nil {
		return nil, fmt.Errorf("spec.authURL of the provider config: %w", err)
	}
	p := &project{key: key, client: c}
	c.UserAgent.Prepend("drover")
	c.HTTPClient = http.Client{Transport: watch{next: ratelimit.New(t), project: p, faults: f}}
	return p, nil
}

// login requests a token, once. When it expires, gophercloud requests another.
func (p *project) login(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loggedIn {
		return nil
	}
	if p.refused != nil && time.Since(p.at) < refusedFor {
		return p.refused
	}
	o, err := p.key.credentials.options(p.key.authURL)
	if err != nil {
		return err
	}
	if err := cloud.Authenticate(ctx, p.client, o); err != nil {
		err = fmt.Errorf("cannot log in at %s: %w", p.key.authURL, err)
		if gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
			p.refused, p.at = err, time.Now()
		}
		return err
	}
	// The endpoint locator of the Terraform provider requests no versions from the services.
	p.client.EndpointLocator = p.config().EndpointLocator
	p.loggedIn, p.refused = true, nil
	return nil
}

// config returns the configuration for the Terraform provider.
func (p *project) config() *openstack.Config {
	return &openstack.Config{Config: auth.Config{
		OsClient: p.client, AuthOpts: &gophercloud.AuthOptions{}, Region: p.key.region, IdentityEndpoint: p.key.authURL,
		UseOctavia: true, MutexKV: mutexkv.NewMutexKV(),
	}}
}

func (p *project) compute() (*gophercloud.ServiceClient, error) {
	return cloud.NewComputeV2(p.client, gophercloud.EndpointOpts{Region: p.key.region})
}

func (p *project) network() (*gophercloud.ServiceClient, error) {
	return cloud.NewNetworkV2(p.client, gophercloud.EndpointOpts{Region: p.key.region})
}

// codeCreationUnknown is the prefix of an error of a creation that may have created something.
const codeCreationUnknown = "CreationUnknown: "

// watch records the responses about servers, ports and floating IPs.
type watch struct {
	next    http.RoundTripper
	project *project
	faults  *faults
}

var (
	oneServer = regexp.MustCompile(`/servers/([0-9a-f-]{36})$`)
	oneBeside = regexp.MustCompile(`/(ports|floatingips)/[0-9a-f-]{36}$`)
	all       = regexp.MustCompile(`/(servers|ports|floatingips)$`)
)

func (w watch) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if req.Method == http.MethodPost && all.MatchString(req.URL.Path) {
		return unknown(resp, err)
	}
	if err != nil || req.Method != http.MethodGet || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	if id := oneServer.FindStringSubmatch(req.URL.Path); id != nil {
		w.project.hasShown.Store(true)
		var status string
		status, err = w.faults.note(id[1], resp)
		if err == nil && isDeletedStatus(status) {
			return asGone(resp, id[1]), nil
		}
		if err == nil {
			err = showReadable(resp)
		}
	}
	if oneBeside.MatchString(req.URL.Path) {
		w.project.hasShown.Store(true)
	}
	return resp, err
}

// unknown returns an error with codeCreationUnknown if it is unknown whether a creation created
// anything. A gateway without a server behind it answers 503, and then nothing was created.
func unknown(resp *http.Response, err error) (*http.Response, error) {
	switch {
	case err != nil && !ratelimit.Unsent(err):
		return nil, fmt.Errorf(codeCreationUnknown+"%w", err)
	case err == nil && resp.StatusCode >= http.StatusInternalServerError && resp.StatusCode != http.StatusServiceUnavailable:
		_ = resp.Body.Close()
		return nil, fmt.Errorf(codeCreationUnknown+"the answer is %s", resp.Status)
	}
	return resp, err
}

// faults has the fault messages of servers by their IDs, or the statuses that the Terraform provider cannot read. It only
// reports that a server failed.
type faults struct{ texts sync.Map }

// note records the fault in the response about a server, and returns the status of the server.
func (f *faults) note(id string, resp *http.Response) (string, error) {
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return "", err
	}
	resp.Body = io.NopCloser(bytes.NewReader(b))
	var s struct {
		Server struct {
			Status string `json:"status"`
			Fault  struct {
				Message string `json:"message"`
			} `json:"fault"`
		} `json:"server"`
	}
	_ = json.Unmarshal(b, &s)
	switch status := s.Server.Status; {
	case status == "ERROR":
		f.texts.Store(id, s.Server.Fault.Message)
	case shownAs[status] != "":
		f.texts.Store(id, "Nova reports "+status)
	default:
		f.texts.Delete(id)
	}
	return s.Server.Status, nil
}

func (f *faults) of(id string) string {
	text, _ := f.texts.Load(id)
	s, _ := text.(string)
	return s
}

var errOtherProject = errors.New("PermissionDenied: the project of the credentials has no server, port or floating IP of Drover at all: are they those of another project? A resource counts as lost only when the project has shown one")

// gone returns an error if it is not certain that a server, a port or a floating IP is gone, because its
// project was not seen to have any: credentials of another project would not show it either.
func (p *projects) gone(ctx context.Context, mg resource.ModernManaged) error {
	project, err := p.of(ctx, mg)
	if err != nil {
		return err
	}
	if project.hasShown.Load() {
		return nil
	}
	all, err := project.servers(ctx, servers.ListOpts{})
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Metadata[machinev1alpha1.TagInstallation] != "" {
			return nil
		}
	}
	beside, err := project.beside(ctx)
	if err != nil {
		return err
	}
	if len(beside) > 0 {
		return nil
	}
	return errOtherProject
}

// servers returns the servers of the project in its region that the options select.
func (p *project) servers(ctx context.Context, o servers.ListOpts) ([]servers.Server, error) {
	c, err := p.compute()
	if err != nil {
		return nil, err
	}
	pages, err := servers.List(c, o).AllPages(ctx)
	if err != nil {
		return nil, err
	}
	return servers.ExtractServers(pages)
}
