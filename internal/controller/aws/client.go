package aws

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"

	"github.com/drover-dev/drover/apis/aws/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	cloudaws "github.com/drover-dev/drover/internal/cloud/aws"
	"github.com/drover-dev/drover/internal/cloud/trust"
	"github.com/drover-dev/drover/internal/native"
)

const (
	// callTimeout is the timeout of a call, with the wait for its turn.
	callTimeout = 20 * time.Second
	// maxError is the maximum size of an error response in bytes.
	maxError = 64 << 10
)

// keys are the content of a configuration's Secret. They are empty if the configuration uses the identity of the
// provider's pod.
type keys struct {
	AccessKeyID     string `json:"accessKeyID"`
	SecretAccessKey string `json:"secretAccessKey"`
	SessionToken    string `json:"sessionToken,omitempty"`
}

func (k keys) validate() error {
	switch {
	case k.AccessKeyID == "":
		return errors.New("credentials: accessKeyID: must not be empty")
	case k.SecretAccessKey == "":
		return errors.New("credentials: secretAccessKey: must not be empty")
	}
	return nil
}

// connect returns the clients of a configuration. It makes no call. A namespaced configuration has its own Secret:
// otherwise a user of one namespace could use the rights of the provider's pod.
func connect(spec v1alpha1.ProviderConfigSpec, namespaced bool, k keys, next http.RoundTripper, now func() time.Time) (cloudaws.Clients, error) {
	o := cloudaws.Options{
		Region: spec.Region, Endpoint: spec.Endpoint, STSEndpoint: spec.STSEndpoint, CABundle: spec.CABundle,
		Role: cloudaws.Role{ARN: spec.RoleARN, ExternalID: spec.ExternalID}, Once: true,
	}
	if spec.Credentials.Source == v1alpha1.CredentialsInjectedIdentity {
		if namespaced {
			return cloudaws.Clients{}, errors.New("spec.credentials.source: invalid value InjectedIdentity: only a ClusterProviderConfig uses the identity of the provider's pod")
		}
	} else {
		if err := k.validate(); err != nil {
			return cloudaws.Clients{}, err
		}
		o.Keys = &cloudaws.Keys{AccessKeyID: k.AccessKeyID, SecretAccessKey: k.SecretAccessKey, SessionToken: k.SessionToken}
	}
	if next == nil {
		transport, err := trust.Transport(spec.CABundle, callTimeout)
		if err != nil {
			return cloudaws.Clients{}, err
		}
		next = transport
	}
	client := native.HTTPClient(throttled{next}, callTimeout, now)
	client.Transport = restored{client.Transport}
	o.Client = client
	return cloudaws.Connect(context.Background(), o)
}

// throttled gives a response with a code of throttling the status 429, by which the rate limiter adapts. EC2 has the
// status 503 for it.
type throttled struct{ next http.RoundTripper }

func (t throttled) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil || resp.StatusCode < http.StatusBadRequest {
		return resp, err
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxError))
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(b))
	if isThrottling(codeIn(b)) {
		resp.Header.Set(ownStatus, strconv.Itoa(resp.StatusCode))
		resp.StatusCode = http.StatusTooManyRequests
	}
	return resp, nil
}

// codeIn returns the code in an error response of EC2 or of the Security Token Service.
func codeIn(body []byte) string {
	var out struct {
		EC2 string `xml:"Errors>Error>Code"`
		STS string `xml:"Error>Code"`
	}
	if xml.Unmarshal(body, &out) != nil {
		return ""
	}
	return out.EC2 + out.STS
}

// ownStatus is the header with the status that the API returned.
const ownStatus = "X-Drover-Status"

// restored gives a response its own status back, which errors report.
type restored struct{ next http.RoundTripper }

func (r restored) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if status, err := strconv.Atoi(resp.Header.Get(ownStatus)); err == nil {
		resp.StatusCode = status
	}
	return resp, nil
}

// paces keep the calls that EC2 limits most below their limits: those of the page "Request throttling for the Amazon
// EC2 API" for an account in a region. Other clients of the account have the same limits: then EC2 throttles.
type paces struct{ run, start *rate.Limiter }

func newPaces() paces {
	return paces{run: rate.NewLimiter(runRate, runBurst), start: rate.NewLimiter(runRate, runBurst)}
}

// runRate and runBurst are the calls per second, and at once, of RunInstances and of StartInstances.
const runRate, runBurst = 2, 5

// wait waits until a call may be made. If its turn is after the deadline of ctx, it fails at once, without a call.
func wait(ctx context.Context, l *rate.Limiter) error {
	if err := l.Wait(ctx); err != nil {
		return &native.Error{Class: fn.ErrorThrottled, Err: err, Refused: true}
	}
	return nil
}
