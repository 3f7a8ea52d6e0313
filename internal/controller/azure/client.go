package azure

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7"
	"golang.org/x/sync/semaphore"

	"github.com/drover-dev/drover/apis/azure/v1alpha1"
	cloudazure "github.com/drover-dev/drover/internal/cloud/azure"
	"github.com/drover-dev/drover/internal/cloud/trust"
	"github.com/drover-dev/drover/internal/native"
)

// callTimeout is the timeout of a call.
const callTimeout = 20 * time.Second

// credentials are the content of a configuration's Secret. They are nil if the configuration uses the identity of the
// provider's pod.
type credentials = json.RawMessage

// An api has the clients of one subscription. All share a rate limit and a token.
type api struct {
	subscription *cloudazure.Subscription
	vms          *armcompute.VirtualMachinesClient
	disks        *armcompute.DisksClient
	interfaces   *armnetwork.InterfacesClient
	addresses    *armnetwork.PublicIPAddressesClient
	// storage reads the consoles, from other servers than Azure Resource Manager and without its token.
	storage *http.Client
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
	subscription, err := cloudazure.Connect(cloudazure.Options{
		Credentials: c, Endpoint: spec.Endpoint, SubscriptionID: spec.SubscriptionID, Once: callTimeout,
		Transport: native.HTTPClient(limits{next, now}, callTimeout, now).Transport,
		Shared:    func(next azcore.TokenCredential) azcore.TokenCredential { return newSharedToken(next, now) },
	})
	if err != nil {
		return nil, err
	}
	compute, err := armcompute.NewClientFactory(subscription.ID, subscription.Credential, subscription.Options)
	if err != nil {
		return nil, err
	}
	network, err := armnetwork.NewClientFactory(subscription.ID, subscription.Credential, subscription.Options)
	if err != nil {
		return nil, err
	}
	return &api{
		subscription: subscription, vms: compute.NewVirtualMachinesClient(), disks: compute.NewDisksClient(),
		interfaces: network.NewInterfacesClient(), addresses: network.NewPublicIPAddressesClient(),
		storage: native.HTTPClient(next, callTimeout, now),
	}, nil
}

// A sharedToken gets a token once for all clients: each of them would get one of its own.
type sharedToken struct {
	next azcore.TokenCredential
	now  func() time.Time
	// turn is held during a call, and guards token. A wait for a mutex cannot be canceled.
	turn  *semaphore.Weighted
	token azcore.AccessToken
}

// renewBefore is how long before its end a token is renewed.
const renewBefore = 5 * time.Minute

func newSharedToken(next azcore.TokenCredential, now func() time.Time) *sharedToken {
	return &sharedToken{next: next, now: now, turn: semaphore.NewWeighted(1)}
}

// GetToken implements [azcore.TokenCredential].
func (s *sharedToken) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return azcore.AccessToken{}, err
	}
	defer s.turn.Release(1)
	// Azure asks for a token with claims if it revoked the last one.
	if o.Claims == "" && s.token.Token != "" && s.now().Add(renewBefore).Before(s.token.ExpiresOn) {
		return s.token, nil
	}
	t, err := s.next.GetToken(ctx, o)
	if err != nil {
		return azcore.AccessToken{}, err
	}
	s.token = t
	return t, nil
}

// Buckets of Azure Resource Manager for each subscription and identity: see
// https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling.
const (
	bucketOfReads, readsPerSecond   = 250, 25
	bucketOfWrites, writesPerSecond = 200, 10
	// few is the number of calls left from which on the limits are passed on.
	few = 20
)

// limits translates the headers with the calls that are left into those that the rate limiter reads.
type limits struct {
	next http.RoundTripper
	now  func() time.Time
}

// RoundTrip sends a request.
func (l limits) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	for header, bucket := range map[string][2]int{
		"x-ms-ratelimit-remaining-subscription-reads":   {bucketOfReads, readsPerSecond},
		"x-ms-ratelimit-remaining-subscription-writes":  {bucketOfWrites, writesPerSecond},
		"x-ms-ratelimit-remaining-subscription-deletes": {bucketOfWrites, writesPerSecond},
	} {
		left, err := strconv.Atoi(resp.Header.Get(header))
		if err != nil || left < 0 || left >= few {
			continue
		}
		full := l.now().Add(time.Duration(bucket[0]-left) * time.Second / time.Duration(bucket[1]))
		resp.Header.Set("RateLimit-Limit", strconv.Itoa(bucket[0]))
		resp.Header.Set("RateLimit-Remaining", strconv.Itoa(left))
		resp.Header.Set("RateLimit-Reset", strconv.FormatInt(full.Unix(), 10))
	}
	return resp, nil
}

// maxConsole is the maximum size of a console that is read, in bytes.
const maxConsole = 4 << 20

// readConsole returns the text at a URL, which has its own authorization.
func (c *api) readConsole(ctx context.Context, at string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return "", err
	}
	resp, err := c.storage.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", &answerError{status: resp.StatusCode, message: "the storage account refused to return the console"}
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxConsole))
	return string(b), err
}
