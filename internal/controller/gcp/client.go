package gcp

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"github.com/drover-dev/drover/apis/gcp/v1alpha1"
	cloudgcp "github.com/drover-dev/drover/internal/cloud/gcp"
	"github.com/drover-dev/drover/internal/cloud/trust"
	"github.com/drover-dev/drover/internal/native"
)

// callTimeout is the timeout of a call.
const callTimeout = 20 * time.Second

// credentials are the content of a configuration's Secret: the key of a service account. They are nil if the
// configuration uses the identity of the provider's pod.
type credentials = json.RawMessage

// An api is the Compute API of one project.
type api struct {
	options cloudgcp.Options

	mu      sync.Mutex
	project *cloudgcp.Project
}

// newAPI returns an api. It makes no call.
func newAPI(spec v1alpha1.ProviderConfigSpec, c credentials, next http.RoundTripper, now func() time.Time) (*api, error) {
	if next == nil {
		t, err := trust.Transport(spec.CABundle, callTimeout)
		if err != nil {
			return nil, err
		}
		next = t
	}
	return &api{options: cloudgcp.Options{
		Credentials: c, ProjectID: spec.ProjectID, Endpoint: spec.Endpoint, Scope: compute.ComputeScope, Once: true,
		Transport: native.HTTPClient(native.Throttled{Next: next, Is: isThrottled}, callTimeout, now).Transport,
	}}, nil
}

// connect returns the project. The first call without a Secret searches for the identity of the pod.
func (c *api) connect(ctx context.Context) (*cloudgcp.Project, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.project != nil {
		return c.project, nil
	}
	p, err := cloudgcp.Connect(ctx, c.options)
	if err != nil {
		return nil, err
	}
	c.project = p
	return p, nil
}

// isThrottled reports whether a response is a 403 whose reason is the rate of the calls.
func isThrottled(resp *http.Response, body []byte) bool {
	if resp.StatusCode != http.StatusForbidden {
		return false
	}
	answer, ok := googleapi.CheckResponseWithBody(resp, body).(*googleapi.Error) //nolint:errorlint // It wraps nothing.
	return ok && slices.ContainsFunc(answer.Errors, func(e googleapi.ErrorItem) bool { return isThrottling(e.Reason) })
}
