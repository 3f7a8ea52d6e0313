package azuretest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/drover-dev/drover/test/fakes"
)

// audience that a federated token must have: see
// https://learn.microsoft.com/entra/workload-id/workload-identity-federation.
const audience = "api://AzureADTokenExchange"

// keyBits of the keys of certificates.
const keyBits = 2048

// federation is a federated identity credential: an identity trusts the tokens that the issuer
// signs for the subject.
type federation struct {
	issuer, subject string
	key             *ecdsa.PublicKey
}

// Federate makes an identity trust the tokens of a Kubernetes service account, and returns such
// a token.
func (c *Cloud) Federate(client, issuer, subject string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.identity(client)
	i.federations = append(i.federations, federation{issuer, subject, &key.PublicKey})
	now := c.opts.Now()
	return jwt.NewWithClaims(jwt.SigningMethodES256, jwt.RegisteredClaims{
		Issuer: issuer, Subject: subject, Audience: jwt.ClaimStrings{audience}, IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(tokenLife)),
	}).SignedString(key)
}

// openID: https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc#fetch-the-openid-configuration-document.
func (c *Cloud) openID(w http.ResponseWriter, r *http.Request, tenant string) {
	if tenant != c.opts.Tenant {
		c.refuse(w, http.StatusBadRequest, "invalid_tenant", 90002, "Tenant '"+tenant+"' not found. Check to make sure you have the correct tenant ID and are signing into the correct cloud.")
		return
	}
	at := "https://" + r.Host + "/" + tenant
	fakes.AnswerJSON(w, http.StatusOK, map[string]any{
		"issuer": at + "/v2.0", "authorization_endpoint": at + "/oauth2/v2.0/authorize", "token_endpoint": at + "/oauth2/v2.0/token",
		"token_endpoint_auth_methods_supported": []string{"client_secret_post", "private_key_jwt", "client_secret_basic"},
	})
}

// token: https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow.
// The codes and texts of errors: https://learn.microsoft.com/entra/identity-platform/reference-error-codes.
func (c *Cloud) token(w http.ResponseWriter, r *http.Request, tenant string, body []byte) {
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("grant_type") != "client_credentials" {
		c.refuse(w, http.StatusBadRequest, "unsupported_grant_type", 70003, "The app requested an unsupported grant type '"+form.Get("grant_type")+"'.")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	client := form.Get("client_id")
	i := c.identities[client]
	switch {
	case tenant != c.opts.Tenant:
		c.refuse(w, http.StatusBadRequest, "invalid_request", 90002, "Tenant '"+tenant+"' not found. Check to make sure you have the correct tenant ID and are signing into the correct cloud.")
	case i == nil:
		c.refuse(w, http.StatusBadRequest, "unauthorized_client", 700016, "Application with identifier '"+client+"' was not found in the directory '"+tenant+"'. This can happen if the application has not been installed by the administrator of the tenant or consented to by any user in the tenant.")
	case form.Get("client_assertion") != "":
		c.assertion(w, client, form.Get("client_assertion"), "https://"+r.Host+r.URL.Path)
	case !slices.Contains(i.secrets, form.Get("client_secret")):
		c.refuse(w, http.StatusUnauthorized, "invalid_client", 7000215, "Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not the client secret ID, for a secret added to app '"+client+"'.")
	default:
		fakes.AnswerJSON(w, http.StatusOK, c.newToken(client))
	}
}

// assertion of an identity, signed by its certificate or by an issuer that it trusts:
// https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow#second-case-access-token-request-with-a-certificate
// and the third case there.
func (c *Cloud) assertion(w http.ResponseWriter, client, text, endpoint string) {
	i := c.identities[client]
	for _, f := range i.federations {
		if c.isSigned(text, f.key, []string{"ES256"}, f.issuer, f.subject, audience) {
			fakes.AnswerJSON(w, http.StatusOK, c.newToken(client))
			return
		}
	}
	for _, key := range i.certified {
		if c.isSigned(text, key, []string{"PS256", "RS256"}, client, client, endpoint) {
			fakes.AnswerJSON(w, http.StatusOK, c.newToken(client))
			return
		}
	}
	if len(i.certified) > 0 {
		c.refuse(w, http.StatusUnauthorized, "invalid_client", 700027, "The certificate with identifier used to sign the client assertion is not registered on application.")
		return
	}
	c.refuse(w, http.StatusUnauthorized, "invalid_client", 700213, "No matching federated identity record found for presented assertion. Check your federated identity credential Subject, Audience and Issuer against the presented assertion.")
}

func (c *Cloud) isSigned(text string, key any, methods []string, issuer, subject, audience string) bool {
	parsed, err := jwt.Parse(text, func(*jwt.Token) (any, error) { return key, nil },
		jwt.WithIssuer(issuer), jwt.WithSubject(subject), jwt.WithAudience(audience), jwt.WithValidMethods(methods), jwt.WithTimeFunc(c.opts.Now))
	return err == nil && parsed.Valid
}

// NewCertificate gives an identity a certificate, and returns it with its private key in PEM.
func (c *Cloud) NewCertificate(client string) ([]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: client}, NotAfter: c.opts.Now().Add(tokenLife)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.identity(client)
	i.certified = append(i.certified, &key.PublicKey)
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...), nil
}

// machineToken: https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token#get-a-token-using-http.
func (c *Cloud) machineToken(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	want := r.URL.Query().Get("client_id")
	switch {
	case r.Header.Get("Metadata") != "true":
		fakes.AnswerJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_request", "error_description": "Required metadata header not specified"})
	case c.machine == "" || want != "" && want != c.machine:
		fakes.AnswerJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_request", "error_description": "Identity not found"})
	default:
		t := c.newToken(c.machine)
		t["resource"] = r.URL.Query().Get("resource")
		// This endpoint writes numbers as text.
		t["expires_in"], t["expires_on"] = "3600", jwtTime(c.opts.Now().Add(tokenLife))
		fakes.AnswerJSON(w, http.StatusOK, t)
	}
}

func (c *Cloud) newToken(client string) map[string]any {
	text := "eyJ" + uuid.NewString()
	c.tokens[text] = token{client: client, expires: c.opts.Now().Add(tokenLife)}
	return map[string]any{"token_type": "Bearer", "expires_in": int(tokenLife.Seconds()), "ext_expires_in": int(tokenLife.Seconds()), "access_token": text}
}

// refuse as Entra ID does.
func (c *Cloud) refuse(w http.ResponseWriter, status int, code string, number int, text string) {
	trace, correlation, at := uuid.NewString(), uuid.NewString(), c.opts.Now().UTC().Format("2006-01-02 15:04:05Z")
	fakes.AnswerJSON(w, status, map[string]any{
		"error": code, "error_codes": []int{number}, "timestamp": at, "trace_id": trace, "correlation_id": correlation,
		"error_description": "AADSTS" + itoa(number) + ": " + text + " Trace ID: " + trace + " Correlation ID: " + correlation + " Timestamp: " + at,
		"error_uri":         "https://login.microsoftonline.com/error?code=" + itoa(number),
	})
}

func jwtTime(t time.Time) string { return itoa(int(t.Unix())) }
