package aws

import (
	"context"
	"encoding/xml"
	"errors"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/drover-dev/drover/apis/aws/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	cloudaws "github.com/drover-dev/drover/internal/cloud/aws"
	"github.com/drover-dev/drover/internal/cloud/trust"
	"github.com/drover-dev/drover/internal/native"
)

// callTimeout is the timeout of a call, with the wait for its turn.
const callTimeout = 20 * time.Second

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
	// EC2 has the status 503 for throttling.
	next = native.Throttled{Next: next, Is: func(_ *http.Response, body []byte) bool { return isThrottling(codeIn(body)) }}
	client := native.HTTPClient(next, callTimeout, now)
	client.Transport = native.Restored{Next: client.Transport}
	o.Client = client
	return cloudaws.Connect(context.Background(), o)
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
