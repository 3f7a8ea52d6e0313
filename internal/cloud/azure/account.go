package azure

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resourcegraph/armresourcegraph"

	"github.com/drover-dev/drover/internal/cloud/trust"
	"github.com/drover-dev/drover/internal/inventory"
)

const (
	// answerTimeout ends a try of a call that Azure does not answer.
	answerTimeout = time.Minute
	// retries of a call that Azure throttles or fails to answer.
	retries = 5
	// patience is the longest time to wait before a retry. If Azure demands more, the call
	// fails, so that the inventory can report why it has no list.
	patience = 30 * time.Second
	// applicationID begins the User-Agent of all calls.
	applicationID = "drover"
)

// Options of a Lister.
type Options struct {
	// Credentials are the JSON that provider-upjet-azure reads from its Secret, with clientId,
	// tenantId, and clientSecret or clientCertificate. Nil means the identity of the pod: a
	// federated token if AZURE_FEDERATED_TOKEN_FILE is set (workload identity), else the managed
	// identity of the machine.
	Credentials []byte
	// Endpoint of Azure Resource Manager. Default: resourceManagerEndpointUrl of the credentials,
	// or https://management.azure.com.
	Endpoint string
	// SubscriptionID of the subscription to list. Default: subscriptionId of the credentials.
	SubscriptionID string
	// CABundle in PEM format has the authorities that sign the certificates of the endpoints, as of
	// Azure Stack Hub. Default: those that the system trusts.
	CABundle []byte
	// Transport of all calls. Default: one that trusts the CABundle.
	Transport http.RoundTripper
	// Once, if it is not 0, is the timeout of a call, and means that no call is repeated: the Transport limits the rate, and
	// the caller tries again.
	Once time.Duration
	// Shared returns the credential that all clients use, in place of the one that it gets. Default: the same one.
	Shared func(azcore.TokenCredential) azcore.TokenCredential
}

// A Subscription is one subscription, seen with one identity.
type Subscription struct {
	// ID of the subscription, in lower case.
	ID string
	// Credential and Options are for clients of other APIs of the subscription.
	Credential azcore.TokenCredential
	Options    *arm.ClientOptions

	graph   *armresourcegraph.Client
	manager *arm.Client
}

var (
	_ inventory.ResourceLister = &Subscription{}

	subscriptionID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

// New returns a Lister, which is also an [inventory.ResourceLister]. It calls nothing: wrong
// credentials are an error of the first list. A Lister renews its tokens and may be kept until
// the options change.
func New(_ context.Context, o Options) (inventory.Lister, error) {
	s, err := Connect(o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Connect returns a subscription. It calls nothing, as [New].
func Connect(o Options) (*Subscription, error) {
	c, err := parseCredentials(o.Credentials)
	if err != nil {
		return nil, err
	}
	subscription := cmp.Or(o.SubscriptionID, c.SubscriptionID)
	if !subscriptionID.MatchString(subscription) {
		return nil, &invalidError{"subscriptionID", subscription, "a UUID, such as 0b1f6471-1bf0-4dda-aec3-cb9272f09590"}
	}
	options, err := clientOptions(o, c)
	if err != nil {
		return nil, err
	}
	credential, err := c.credential(options)
	if err != nil {
		return nil, err
	}
	if o.Shared != nil {
		credential = o.Shared(credential)
	}
	return newSubscription(subscription, credential, options)
}

func newSubscription(subscription string, credential azcore.TokenCredential, o azcore.ClientOptions) (*Subscription, error) {
	// A role for VMs has no right to register resource providers. Without this, the SDK tries to register those that are missing.
	options := &arm.ClientOptions{ClientOptions: o, DisableRPRegistration: true}
	graph, err := armresourcegraph.NewClient(credential, options)
	if err != nil {
		return nil, err
	}
	manager, err := arm.NewClient("drover", "v1.0.0", credential, options)
	if err != nil {
		return nil, err
	}
	return &Subscription{ID: strings.ToLower(subscription), Credential: credential, Options: options, graph: graph, manager: manager}, nil
}

func clientOptions(o Options, c credentials) (azcore.ClientOptions, error) {
	where, err := cloudOf(cmp.Or(o.Endpoint, c.ResourceManagerEndpoint), c)
	if err != nil {
		return azcore.ClientOptions{}, err
	}
	next := o.Transport
	if next == nil {
		if next, err = trust.Transport(o.CABundle, answerTimeout); err != nil {
			return azcore.ClientOptions{}, err
		}
	}
	retry := policy.RetryOptions{MaxRetries: retries, MaxRetryDelay: patience, TryTimeout: answerTimeout}
	if o.Once > 0 {
		retry = policy.RetryOptions{MaxRetries: -1}
	}
	return azcore.ClientOptions{
		Cloud: where,
		// A redirect would send the token to another server.
		Transport: &http.Client{Timeout: o.Once, Transport: next, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		Telemetry: policy.TelemetryOptions{ApplicationID: applicationID},
		Retry:     retry,
		// Within a retry, so that it sees each answer.
		PerRetryPolicies: []policy.Policy{quotaPolicy{}},
	}, nil
}

// cloudOf returns the cloud that an endpoint of Azure Resource Manager belongs to. If the endpoint
// is none of the known ones, the credentials name the other endpoints.
func cloudOf(endpoint string, c credentials) (cloud.Configuration, error) {
	found := cloud.AzurePublic
	for _, known := range []cloud.Configuration{cloud.AzureChina, cloud.AzureGovernment} {
		if sameURL(known.Services[cloud.ResourceManager].Endpoint, endpoint) {
			found = known
		}
	}
	manager := found.Services[cloud.ResourceManager]
	manager.Endpoint = strings.TrimRight(cmp.Or(endpoint, manager.Endpoint), "/")
	manager.Audience = cmp.Or(c.ManagementEndpoint, manager.Audience)
	if !strings.HasPrefix(manager.Endpoint, "https://") {
		return found, &invalidError{"endpoint", manager.Endpoint, "a URL that begins with https://, because each call carries a token"}
	}
	return cloud.Configuration{
		ActiveDirectoryAuthorityHost: cmp.Or(c.ActiveDirectoryEndpoint, found.ActiveDirectoryAuthorityHost),
		Services:                     map[cloud.ServiceName]cloud.ServiceConfiguration{cloud.ResourceManager: manager},
	}, nil
}

func sameURL(a, b string) bool {
	return strings.EqualFold(strings.TrimRight(a, "/"), strings.TrimRight(b, "/"))
}
