package gcp

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/compute/v1"
)

// readOnly is the scope of tokens for lists.
const readOnly = compute.ComputeReadonlyScope

// serviceAccount is the type of the credentials that a Secret may hold. The other types name
// URLs and commands that the library would call.
const serviceAccount = "service_account"

// key of a service account.
type key struct {
	Type       string `json:"type"`
	ProjectID  string `json:"project_id"`
	Email      string `json:"client_email"`
	PrivateKey string `json:"private_key"`
	TokenURI   string `json:"token_uri"`
}

// errFormat does not contain the cause, which could quote a part of the Secret.
var errFormat = errors.New(`credentials: must be the key of a service account, JSON like {"type": "service_account", "client_email": "...", "private_key": "..."}`)

// tokens returns the source of the tokens, and the project of the identity if it has one.
func tokens(ctx context.Context, credentials []byte, scope string) (oauth2.TokenSource, string, error) {
	if credentials == nil {
		found, err := google.FindDefaultCredentials(ctx, scope)
		if err != nil {
			return nil, "", fmt.Errorf("PermissionDenied: the pod has no identity, and there is no Secret with credentials: %w", err)
		}
		return found.TokenSource, found.ProjectID, nil
	}
	k := key{}
	if err := json.Unmarshal(credentials, &k); err != nil {
		return nil, "", errFormat
	}
	if err := k.validate(); err != nil {
		return nil, "", err
	}
	config, err := google.JWTConfigFromJSON(credentials, scope)
	if err != nil {
		return nil, "", errFormat
	}
	return config.TokenSource(ctx), k.ProjectID, nil
}

func (k key) validate() error {
	switch {
	case k.Type != serviceAccount:
		return fmt.Errorf("credentials: type: invalid value %q: must be %s", k.Type, serviceAccount)
	case k.Email == "":
		return errors.New("credentials: client_email: must not be empty")
	case !isPrivateKey(k.PrivateKey):
		return errors.New("credentials: private_key: must be a private key in PEM")
	case k.TokenURI != "" && !isSafe(k.TokenURI):
		return &invalidError{"credentials: token_uri", k.TokenURI, "a URL that begins with https://"}
	}
	return nil
}

func isPrivateKey(text string) bool {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return false
	}
	if _, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return true
	}
	_, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	return err == nil
}
