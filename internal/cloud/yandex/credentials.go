package yandex

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/golang-jwt/jwt/v5"
	iam "github.com/yandex-cloud/go-genproto/yandex/cloud/iam/v1"
)

const (
	// audience of a token that is exchanged for an IAM token, and how long one is valid, which
	// is the most that is allowed: https://yandex.cloud/docs/iam/operations/iam-token/create-for-sa
	audience = "https://iam.api.cloud.yandex.net/iam/v1/tokens"
	validity = time.Hour
	// defaultMetadataURL is the metadata service of a VM, and metadataPath its IAM token.
	defaultMetadataURL = "http://169.254.169.254"
	metadataPath       = "/computeMetadata/v1/instance/service-accounts/default/token"
	// early is how long before it expires an IAM token is replaced.
	early = 5 * time.Minute
)

// A serviceAccountKey is an authorized key, as yc iam key create writes it.
type serviceAccountKey struct {
	id, serviceAccount string
	private            *rsa.PrivateKey
}

// keyOf reads an authorized key. Errors never contain the key.
func keyOf(value []byte) (*serviceAccountKey, error) {
	var in struct {
		ID               string `json:"id"`
		ServiceAccountID string `json:"service_account_id"`
		PrivateKey       string `json:"private_key"`
	}
	if err := json.Unmarshal(value, &in); err != nil {
		return nil, errors.New(`credentials: must be the JSON of an authorized key: {"id": "...", "service_account_id": "...", "private_key": "..."}`)
	}
	for _, field := range [][2]string{{"id", in.ID}, {"service_account_id", in.ServiceAccountID}, {"private_key", in.PrivateKey}} {
		if field[1] == "" {
			return nil, fmt.Errorf("credentials: %s: must not be empty", field[0])
		}
	}
	private, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(in.PrivateKey))
	if err != nil {
		return nil, errors.New("credentials: private_key: must be an RSA private key in PEM format")
	}
	return &serviceAccountKey{id: in.ID, serviceAccount: in.ServiceAccountID, private: private}, nil
}

// sign a token that can be exchanged for an IAM token.
func (k *serviceAccountKey) sign(now time.Time) (string, error) {
	t := jwt.NewWithClaims(jwt.SigningMethodPS256, jwt.RegisteredClaims{
		Issuer: k.serviceAccount, Audience: jwt.ClaimStrings{audience},
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(validity)),
	})
	t.Header["kid"] = k.id
	return t.SignedString(k.private)
}

// An iamToken authenticates calls.
type iamToken struct {
	value   string
	expires time.Time
}

func (t iamToken) isUsable(now time.Time) bool {
	return t.value != "" && now.Add(early).Before(t.expires)
}

// exchange a signed token for an IAM token.
func (k *serviceAccountKey) exchange(ctx context.Context, service iam.IamTokenServiceClient, now time.Time) (iamToken, error) {
	signed, err := k.sign(now)
	if err != nil {
		return iamToken{}, fmt.Errorf("credentials: private_key: cannot sign with it: %w", err)
	}
	answer, err := service.Create(ctx, &iam.CreateIamTokenRequest{Identity: &iam.CreateIamTokenRequest_Jwt{Jwt: signed}})
	if err != nil {
		return iamToken{}, describe("cannot get an IAM token for service account "+k.serviceAccount, err)
	}
	return iamToken{value: answer.GetIamToken(), expires: answer.GetExpiresAt().AsTime()}, nil
}

// ofVM returns the IAM token of the service account of the VM that the process runs on:
// https://yandex.cloud/docs/compute/operations/vm-connect/auth-inside-vm
func ofVM(ctx context.Context, c *http.Client, metadataURL string, now time.Time) (iamToken, error) {
	const what = "cannot get the IAM token of the VM's service account from the metadata service"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, metadataURL+metadataPath, nil)
	if err != nil {
		return iamToken{}, fmt.Errorf("%s: %w", what, err)
	}
	req.Header.Set("Metadata-Flavor", "Google")
	resp, err := c.Do(req)
	if err != nil {
		return iamToken{}, fmt.Errorf("%s: %w; without a service account on its VMs a Secret is required", what, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return iamToken{}, fmt.Errorf("PermissionDenied: %s: %s; does the VM have a service account?", what, resp.Status)
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, resp.Body, 1<<16)).Decode(&answer); err != nil || answer.AccessToken == "" {
		return iamToken{}, fmt.Errorf("%s: the answer has no access_token", what)
	}
	return iamToken{value: answer.AccessToken, expires: now.Add(time.Duration(answer.ExpiresIn) * time.Second)}, nil
}
