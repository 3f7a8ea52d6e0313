package azure

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Environment variables by which Azure's webhook for workload identity, or an operator, gives
// a pod its identity.
const (
	envFederatedTokenFile = "AZURE_FEDERATED_TOKEN_FILE"
	envClientID           = "AZURE_CLIENT_ID"
)

// credentials are the JSON of `az ad sp create-for-rbac --sdk-auth`, which is what
// provider-upjet-azure reads.
type credentials struct {
	ClientID                string `json:"clientId"`
	ClientSecret            string `json:"clientSecret"`
	ClientCertificate       string `json:"clientCertificate"`
	CertificatePassword     string `json:"clientCertificatePassword"`
	TenantID                string `json:"tenantId"`
	SubscriptionID          string `json:"subscriptionId"`
	ActiveDirectoryEndpoint string `json:"activeDirectoryEndpointUrl"`
	ResourceManagerEndpoint string `json:"resourceManagerEndpointUrl"`
	ManagementEndpoint      string `json:"managementEndpointUrl"`

	// podIdentity is set if there is no Secret.
	podIdentity bool
}

// errFormat does not contain the cause, which could quote a part of the Secret.
var errFormat = errors.New(`credentials: must be JSON like {"clientId": "...", "clientSecret": "...", "tenantId": "...", "subscriptionId": "..."}`)

func parseCredentials(text []byte) (credentials, error) {
	c := credentials{podIdentity: text == nil}
	if c.podIdentity {
		return c, nil
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, errFormat
	}
	// A Secret that is written by hand easily ends with a line break.
	for _, field := range []*string{&c.ClientID, &c.ClientSecret, &c.TenantID, &c.SubscriptionID} {
		*field = strings.TrimSpace(*field)
	}
	switch {
	case c.ClientID == "":
		return c, errors.New("credentials: clientId: must not be empty")
	case c.TenantID == "":
		return c, errors.New("credentials: tenantId: must not be empty")
	case c.ClientSecret == "" && c.ClientCertificate == "":
		return c, errors.New("credentials: clientSecret: must not be empty, unless there is a clientCertificate")
	}
	return c, nil
}

// credential that gets tokens for calls. The instance discovery is off: it would ask Azure's
// public cloud whether the authority of a private one is to be trusted, and the Secret decides
// that.
func (c credentials) credential(o azcore.ClientOptions) (azcore.TokenCredential, error) {
	switch {
	case !c.podIdentity && c.ClientSecret != "":
		return azidentity.NewClientSecretCredential(c.TenantID, c.ClientID, c.ClientSecret, &azidentity.ClientSecretCredentialOptions{ClientOptions: o, DisableInstanceDiscovery: true})
	case !c.podIdentity:
		return c.certificate(o)
	case os.Getenv(envFederatedTokenFile) != "":
		return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: o, DisableInstanceDiscovery: true})
	}
	options := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: o}
	if id := os.Getenv(envClientID); id != "" {
		options.ID = azidentity.ClientID(id)
	}
	return azidentity.NewManagedIdentityCredential(options)
}

var errCertificate = errors.New("credentials: clientCertificate: must be a certificate and its private key, as a PKCS#12 archive in base64, with clientCertificatePassword if it is encrypted")

func (c credentials) certificate(o azcore.ClientOptions) (azcore.TokenCredential, error) {
	archive, err := base64.StdEncoding.DecodeString(strings.TrimSpace(c.ClientCertificate))
	if err != nil {
		return nil, errCertificate
	}
	chain, key, err := azidentity.ParseCertificates(archive, []byte(c.CertificatePassword))
	if err != nil {
		return nil, errCertificate
	}
	return azidentity.NewClientCertificateCredential(c.TenantID, c.ClientID, chain, key, &azidentity.ClientCertificateCredentialOptions{ClientOptions: o, DisableInstanceDiscovery: true})
}
