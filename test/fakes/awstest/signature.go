package awstest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// maxClock is the most by which the time of a request may differ from that of AWS.
const maxClock = 5 * time.Minute

// A Scope is what a signature is valid for.
type Scope struct{ KeyID, Region, Service string }

// A Refusal is the error response to a request that is not authenticated.
type Refusal struct {
	Status        int
	Code, Message string
}

var notValidated = &Refusal{http.StatusUnauthorized, "AuthFailure", "AWS was not able to validate the provided access credentials"}

// Verify verifies the signature of a request with a body (Signature Version 4), which it computes again with the secret of
// the account that known returns for its access key.
func Verify(r *http.Request, body []byte, now time.Time, known func(keyID string) (Account, bool)) (Account, Scope, *Refusal) {
	header := r.Header.Get("Authorization")
	fields, ok := strings.CutPrefix(header, "AWS4-HMAC-SHA256 ")
	if !ok {
		return Account{}, Scope{}, &Refusal{http.StatusBadRequest, "MissingParameter", "The request must contain the parameter AWSAccessKeyId"}
	}
	parts := map[string]string{}
	for _, f := range strings.Split(fields, ", ") {
		k, v, _ := strings.Cut(f, "=")
		parts[k] = v
	}
	scope := strings.Split(parts["Credential"], "/") // key/date/region/service/aws4_request
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || len(scope) != 5 {
		return Account{}, Scope{}, notValidated
	}
	if d := now.Sub(at); d > maxClock || d < -maxClock {
		return Account{}, Scope{}, &Refusal{http.StatusBadRequest, "RequestExpired", "Request has expired."}
	}
	account, ok := known(scope[0])
	if !ok || account.SessionToken != r.Header.Get("X-Amz-Security-Token") {
		return Account{}, Scope{}, notValidated
	}
	again, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.RequestURI(), http.NoBody)
	if err != nil {
		return Account{}, Scope{}, notValidated
	}
	for _, h := range strings.Split(parts["SignedHeaders"], ";") {
		switch h {
		case "host":
		case "content-length":
			again.ContentLength = r.ContentLength
		default:
			again.Header[http.CanonicalHeaderKey(h)] = r.Header.Values(h)
		}
	}
	sum := sha256.Sum256(body)
	credentials := aws.Credentials{AccessKeyID: scope[0], SecretAccessKey: account.Secret, SessionToken: account.SessionToken}
	if err := v4.NewSigner().SignHTTP(context.Background(), credentials, again, hex.EncodeToString(sum[:]), scope[3], scope[2], at); err != nil {
		return Account{}, Scope{}, notValidated
	}
	if again.Header.Get("Authorization") != header {
		return Account{}, Scope{}, &Refusal{http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details."}
	}
	return account, Scope{KeyID: scope[0], Region: scope[2], Service: scope[3]}, nil
}
