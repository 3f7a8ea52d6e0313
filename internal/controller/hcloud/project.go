package hcloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/hcloud/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/lift"
	"github.com/drover-dev/drover/internal/ratelimit"
)

const (
	// answerTimeout is the timeout of a call that Hetzner Cloud does not answer.
	answerTimeout = time.Minute
	// retries of calls that Hetzner Cloud asks to repeat, for example because another client changed
	// the same object at the same time.
	retries = 3
)

// Actions are polled after firstLook, then at intervals that grow by half, up to latestLook.
const (
	firstLook  = time.Second
	latestLook = 5 * time.Second
)

// projectKey identifies a project: the API has tokens, but no ID of the project.
type projectKey struct{ endpoint, token string }

// projects has one client per project.
type projects struct {
	kube      client.Reader
	transport http.RoundTripper
	known     lift.Accounts[projectKey, *project]
}

func newProjects(c client.Reader) *projects {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = answerTimeout
	return &projects{kube: c, transport: t}
}

// of returns the project that mg's provider config names.
func (p *projects) of(ctx context.Context, mg resource.ModernManaged) (*project, error) {
	key, err := findProject(ctx, p.kube, mg)
	if err != nil {
		return nil, err
	}
	return p.known.Get(key, func() (*project, error) { return newProject(key, p.transport), nil })
}

// A project of Hetzner Cloud, by one of its tokens.
type project struct {
	*hcloud.Client
	key       projectKey
	transport http.RoundTripper
	groups    *placementGroups
	// hasServers reports whether the token has returned a server that was requested by its ID.
	hasServers atomic.Bool
}

func newProject(key projectKey, t http.RoundTripper) *project {
	p := &project{key: key}
	p.transport = watch{ratelimit.New(t), p}
	p.Client = p.newClient(p.transport, retries)
	p.groups = newPlacementGroups(p.Client, time.Now)
	return p
}

// newClient returns a client that repeats a call after an error that may pass, at most maxRetries times.
func (p *project) newClient(t http.RoundTripper, maxRetries int) *hcloud.Client {
	return hcloud.NewClient(
		hcloud.WithEndpoint(p.key.endpoint),
		hcloud.WithToken(p.key.token),
		hcloud.WithApplication("drover", ""),
		hcloud.WithHTTPClient(&http.Client{Transport: t}),
		hcloud.WithPollOpts(hcloud.PollOpts{BackoffFunc: backoff(1.5, firstLook, latestLook)}),
		hcloud.WithRetryOpts(hcloud.RetryOpts{BackoffFunc: backoff(2, time.Second, latestLook), MaxRetries: maxRetries}),
	)
}

func backoff(times float64, from, to time.Duration) hcloud.BackoffFunc {
	return hcloud.ExponentialBackoffWithOpts(hcloud.ExponentialBackoffOpts{Base: from, Multiplier: times, Cap: to})
}

// watch records whether a project has servers.
type watch struct {
	next    http.RoundTripper
	project *project
}

var oneServer = regexp.MustCompile(`/servers/[0-9]+$`)

func (w watch) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusOK && req.Method == http.MethodGet && oneServer.MatchString(req.URL.Path) {
		w.project.hasServers.Store(true)
	}
	return resp, err
}

// find returns the ID of the server that was created for mg, by its name and by the Machine in its
// labels.
func (p *projects) find(ctx context.Context, mg resource.ModernManaged) (string, error) {
	vm, ok := mg.(*v1alpha1.VirtualMachine)
	if !ok {
		return "", fmt.Errorf("%T is not a VirtualMachine", mg)
	}
	name, machine := ptr.Deref(vm.Spec.ForProvider.Name, ""), vm.Spec.ForProvider.Labels[machinev1alpha1.TagMachineUID]
	if name == "" || machine == "" {
		return "", nil
	}
	project, err := p.of(ctx, mg)
	if err != nil {
		return "", err
	}
	s, _, err := project.Server.GetByName(ctx, name)
	if err != nil || s == nil || s.Labels[machinev1alpha1.TagMachineUID] != machine {
		return "", err
	}
	return fmt.Sprint(s.ID), nil
}

var errOtherProject = errors.New("PermissionDenied: the project of the token has no server of Drover at all: is it that of another project? The server counts as lost only when the token has shown one")

// gone returns an error if it is not certain that a server is gone, because its project was not seen
// to have any: a token of another project would not show the server either.
func (p *projects) gone(ctx context.Context, mg resource.ModernManaged) error {
	project, err := p.of(ctx, mg)
	if err != nil {
		return err
	}
	if project.hasServers.Load() {
		return nil
	}
	some, _, err := project.Server.List(ctx, hcloud.ServerListOpts{ListOpts: hcloud.ListOpts{PerPage: 1, LabelSelector: machinev1alpha1.TagInstallation}})
	if err != nil {
		return err
	}
	if len(some) == 0 {
		return errOtherProject
	}
	return nil
}
