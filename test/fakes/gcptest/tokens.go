package gcptest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/drover-dev/drover/test/fakes"
)

const (
	keyBits   = 2048
	grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
)

// Scopes that list: https://developers.google.com/identity/protocols/oauth2/scopes#compute.
var listScopes = []string{
	"https://www.googleapis.com/auth/compute.readonly", "https://www.googleapis.com/auth/compute",
	"https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/cloud-platform.read-only",
}

// writeScopes are those that change: https://developers.google.com/identity/protocols/oauth2/scopes#compute.
var writeScopes = []string{"https://www.googleapis.com/auth/compute", "https://www.googleapis.com/auth/cloud-platform"}

// privateKeys are those of all service accounts, in turn: each key has another ID, and to make one takes a tenth of a second.
var privateKeys = sync.OnceValues(func() (out [2]*rsa.PrivateKey, err error) {
	for n := range out {
		if out[n], err = rsa.GenerateKey(rand.Reader, keyBits); err != nil {
			return out, err
		}
	}
	return out, nil
})

// publicKey of a service account.
type publicKey struct {
	*rsa.PublicKey
	tokenURI string
}

// NewKey gives a service account one more key, and returns it as the JSON of a Secret, for a
// cloud that answers at a URL.
func (c *Cloud) NewKey(email, at string) (credentials []byte, id string, err error) {
	all, err := privateKeys()
	if err != nil {
		return nil, "", err
	}
	c.mu.Lock()
	private := all[c.made%len(all)]
	c.made++
	c.mu.Unlock()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, "", err
	}
	random := uuid.New()
	id = hex.EncodeToString(random[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	c.account(email).keys[id] = publicKey{&private.PublicKey, at + "/token"}
	credentials, err = json.Marshal(map[string]string{
		"type": "service_account", "project_id": c.opts.Project, "private_key_id": id, "client_email": email, "client_id": "100000000000000000001",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"auth_uri":    "https://accounts.google.com/o/oauth2/auth", "token_uri": at + "/token",
	})
	return credentials, id, err
}

// DeleteKey of a service account, and end its tokens. (At Google they live on for up to an hour.)
func (c *Cloud) DeleteKey(email, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.account(email).keys, id)
	for text, t := range c.tokens {
		if t.email == email {
			delete(c.tokens, text)
		}
	}
}

type claims struct {
	jwt.RegisteredClaims
	Scope string `json:"scope"`
}

// exchange a signed assertion for a token:
// https://developers.google.com/identity/protocols/oauth2/service-account#httprest.
func (c *Cloud) exchange(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || r.PostForm.Get("grant_type") != grantType {
		refuse(w, "unsupported_grant_type", "Invalid grant_type: "+r.PostForm.Get("grant_type"))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	got, assertion := claims{}, r.PostForm.Get("assertion")
	unverified, _, err := jwt.NewParser().ParseUnverified(assertion, &got)
	if err != nil {
		refuse(w, "invalid_grant", "Bad Request")
		return
	}
	a := c.accounts[got.Issuer]
	if a == nil {
		refuse(w, "invalid_grant", "Invalid grant: account not found")
		return
	}
	id, _ := unverified.Header["kid"].(string)
	if reason := c.reject(a.keys[id], assertion, got); reason != "" {
		refuse(w, "invalid_grant", reason)
		return
	}
	if got.Scope == "" {
		refuse(w, "invalid_scope", "Invalid OAuth scope or ID token audience provided.")
		return
	}
	fakes.AnswerJSON(w, http.StatusOK, c.newToken(got.Issuer, strings.Fields(got.Scope)))
}

// reject an assertion, with the reason that Google gives, or "" if it is right.
func (c *Cloud) reject(key publicKey, assertion string, got claims) string {
	if key.PublicKey == nil {
		return "Invalid JWT Signature."
	}
	now := c.opts.Now()
	if got.IssuedAt == nil || got.ExpiresAt == nil || now.After(got.ExpiresAt.Time) || got.ExpiresAt.Sub(got.IssuedAt.Time) > tokenLife || got.IssuedAt.After(now.Add(tokenLife)) {
		return "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim."
	}
	_, err := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithoutClaimsValidation()).Parse(assertion, func(*jwt.Token) (any, error) { return key.PublicKey, nil })
	switch {
	case err != nil:
		return "Invalid JWT Signature."
	case !slices.Contains(got.Audience, key.tokenURI):
		return "Invalid JWT: Failed audience check. The right audience is " + key.tokenURI
	}
	return ""
}

func refuse(w http.ResponseWriter, code, description string) {
	fakes.AnswerJSON(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": description})
}

func (c *Cloud) newToken(email string, scopes []string) map[string]any {
	text := "ya29.c." + uuid.NewString()
	c.tokens[text] = token{email: email, scopes: scopes, expires: c.opts.Now().Add(tokenLife)}
	return map[string]any{"access_token": text, "expires_in": int(tokenLife.Seconds()) - 1, "token_type": "Bearer"}
}

// federate exchanges a token of another identity provider:
// https://cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token.
func (c *Cloud) federate(w http.ResponseWriter, r *http.Request) {
	err := r.ParseForm()
	f := r.PostForm
	switch {
	case err != nil || f.Get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange":
		refuse(w, "unsupported_grant_type", "Invalid grant_type: "+f.Get("grant_type"))
		return
	case !strings.HasPrefix(f.Get("audience"), "//iam.googleapis.com/projects/"):
		refuse(w, "invalid_target", "The target service indicated by the \"audience\" parameters is invalid.")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	email, ok := c.federated[f.Get("subject_token")]
	if !ok {
		refuse(w, "invalid_grant", "The given credential is rejected by the attribute condition.")
		return
	}
	answer := c.newToken(email, strings.Fields(f.Get("scope")))
	answer["issued_token_type"] = "urn:ietf:params:oauth:token-type:access_token"
	fakes.AnswerJSON(w, http.StatusOK, answer)
}

// metadata: https://cloud.google.com/compute/docs/metadata/predefined-metadata-keys.
func (c *Cloud) metadata(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Metadata-Flavor") != "Google" {
		http.Error(w, "Missing Metadata-Flavor:Google header.", http.StatusForbidden)
		return
	}
	w.Header().Set("Metadata-Flavor", "Google")
	c.mu.Lock()
	defer c.mu.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/computeMetadata/v1/")
	switch {
	case key == "project/project-id":
		_, _ = w.Write([]byte(c.opts.Project))
	case c.machine != "" && key == "instance/service-accounts/default/token":
		fakes.AnswerJSON(w, http.StatusOK, c.newToken(c.machine, strings.Split(r.URL.Query().Get("scopes"), ",")))
	case c.machine != "" && key == "instance/service-accounts/default/email":
		_, _ = w.Write([]byte(c.machine))
	default:
		http.Error(w, "The requested URL was not found on this server.", http.StatusNotFound)
	}
}
