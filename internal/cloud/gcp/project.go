package gcp

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"google.golang.org/api/compute/v1"
	"google.golang.org/api/option"

	"github.com/drover-dev/drover/internal/cloud/trust"
	"github.com/drover-dev/drover/internal/inventory"
)

const (
	// answerTimeout ends a call that Google does not answer.
	answerTimeout = time.Minute
	// userAgent of all calls.
	userAgent = "drover"
)

// Options of a Lister.
type Options struct {
	// Credentials are the key of a service account in JSON, as provider-upjet-gcp reads it from
	// its Secret. Nil means the Application Default Credentials: the file that
	// GOOGLE_APPLICATION_CREDENTIALS names, or the service account that the metadata server
	// has for the pod (Workload Identity Federation for GKE) or the machine.
	Credentials []byte
	// Endpoint of the Compute API. Without a path, it has the one of Google: /compute/v1/. Default:
	// https://compute.googleapis.com.
	Endpoint string
	// ProjectID of the project to list. Default: that of the credentials.
	ProjectID string
	// CABundle in PEM format has the authorities that sign the certificates of the endpoints. Default:
	// those that the system trusts.
	CABundle []byte
	// Transport of all calls but those to the metadata server. Default: one that trusts the
	// CABundle.
	Transport http.RoundTripper
	// Once means that a call that Google throttles or fails to answer is not repeated. Default: the call is
	// repeated, which only calls that read may be.
	Once bool
	// Scope of the tokens. Default: that of calls that read.
	Scope string
}

// A Project is one project, seen with one identity.
type Project struct {
	ID      string
	Service *compute.Service
}

var (
	_ inventory.ResourceLister = &Project{}

	// projectID also matches one of the domain-scoped projects of old, example.com:name.
	projectID = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$`)
)

// New returns a Lister, which is also an [inventory.ResourceLister]. With credentials it calls
// nothing: wrong ones are an error of the first list. Without, it looks for the identity of the
// pod. A Lister renews its tokens and may be kept until the options change.
func New(ctx context.Context, o Options) (inventory.Lister, error) {
	p, err := Connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Connect returns a project. It calls nothing but what New calls.
func Connect(ctx context.Context, o Options) (*Project, error) {
	if o.Endpoint != "" && !isSafe(o.Endpoint) {
		return nil, &invalidError{"endpoint", o.Endpoint, "a URL that begins with https://, because each call carries a token"}
	}
	next := o.Transport
	if next == nil {
		transport, err := trust.Transport(o.CABundle, answerTimeout)
		if err != nil {
			return nil, err
		}
		next = transport
	}
	if !o.Once {
		next = &patient{next: next}
	}
	// The source of tokens outlives the call that makes it.
	ctx = context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, &http.Client{Transport: next, Timeout: answerTimeout})
	source, fromCredentials, err := tokens(ctx, o.Credentials, cmp.Or(o.Scope, readOnly))
	if err != nil {
		return nil, err
	}
	id := cmp.Or(o.ProjectID, fromCredentials)
	if !projectID.MatchString(id) {
		return nil, &invalidError{"projectID", id, "the ID of a project, such as my-project-123, not its number or name"}
	}
	options := []option.ClientOption{option.WithHTTPClient(&http.Client{Transport: &oauth2.Transport{Source: source, Base: next}})}
	if o.Endpoint != "" {
		options = append(options, option.WithEndpoint(withPath(o.Endpoint)))
	}
	service, err := compute.NewService(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("cannot set up the Compute API: %w", err)
	}
	service.UserAgent = userAgent
	return &Project{ID: id, Service: service}, nil
}

// withPath ends with a slash, because the SDK appends to it.
func withPath(endpoint string) string {
	if u, err := url.Parse(endpoint); err == nil && strings.Trim(u.Path, "/") == "" {
		endpoint = strings.TrimRight(endpoint, "/") + "/compute/v1"
	}
	return strings.TrimRight(endpoint, "/") + "/"
}

// isSafe reports whether a token may be sent to a URL: it is encrypted, or does not leave the
// machine.
func isSafe(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && err == nil && ip.IsLoopback()
}
