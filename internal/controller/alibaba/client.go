package alibaba

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	openapi "github.com/alibabacloud-go/darabonba-openapi/v2/client"
	"github.com/alibabacloud-go/darabonba-openapi/v2/models"
	"github.com/alibabacloud-go/tea/dara"
	"golang.org/x/sync/semaphore"

	"github.com/drover-dev/drover/apis/alibaba/v1alpha1"
	"github.com/drover-dev/drover/internal/cloud/trust"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/ratelimit"
)

const (
	// callTimeout is the timeout of a call.
	callTimeout = 20 * time.Second
	// patience is how long a call waits for its turn at most.
	patience = 30 * time.Second
	// attempts is the maximum number of attempts of a call that is throttled.
	attempts = 3
	// maxAnswer is the maximum size of a response in bytes.
	maxAnswer = 8 << 20
	// maxMessage is the maximum length of the message of an error.
	maxMessage = 512
	// roleSession is the name of the sessions of an assumed role in the audit log.
	roleSession = "drover"
	// roleMargin is the time before the end of a session at which the role is assumed again.
	roleMargin = 5 * time.Minute
)

// credentials are the content of a configuration's Secret.
type credentials struct {
	AccessKeyID     string `json:"accessKeyID"`
	AccessKeySecret string `json:"accessKeySecret"`
	SecurityToken   string `json:"securityToken,omitempty"`
}

func (c credentials) validate() error {
	switch {
	case c.AccessKeyID == "":
		return errors.New("credentials: accessKeyID: must not be empty")
	case c.AccessKeySecret == "":
		return errors.New("credentials: accessKeySecret: must not be empty")
	}
	return nil
}

// A service is an API of Alibaba Cloud.
type service struct{ scheme, host, version string }

// centralEndpoint are the regions whose public endpoint has another name than that of most regions, as in the
// SDK of ECS.
var centralEndpoint = map[string]string{"cn-hangzhou": "ecs-cn-hangzhou.aliyuncs.com"}

// servicesOf returns ECS and the Security Token Service of a configuration.
func servicesOf(spec v1alpha1.ProviderConfigSpec) (ecs, sts service, err error) {
	host := "ecs." + spec.Region + ".aliyuncs.com"
	if central := centralEndpoint[spec.Region]; central != "" {
		host = central
	}
	ecs = service{scheme: "https", host: host, version: "2014-05-26"}
	sts = service{scheme: "https", host: "sts." + spec.Region + ".aliyuncs.com", version: "2015-04-01"}
	if err = ecs.move("endpoint", spec.Endpoint); err == nil {
		err = sts.move("stsEndpoint", spec.STSEndpoint)
	}
	return ecs, sts, err
}

// move changes the address of a service, unless endpoint is empty.
func (s *service) move(field, endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return fmt.Errorf("spec.%s: %w", field, err)
	}
	s.scheme, s.host = u.Scheme, u.Host
	return nil
}

// A caller signs and sends calls.
type caller struct {
	ecs, sts  service
	transport *transport
	own       credentials
	roleARN   string
	now       func() time.Time

	// turn is held while the role is assumed, and guards the fields below.
	turn    *semaphore.Weighted
	session credentials
	ends    time.Time
}

// newCaller returns a caller. It makes no call.
func newCaller(spec v1alpha1.ProviderConfigSpec, c credentials, next http.RoundTripper, now func() time.Time) (*caller, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	ecs, sts, err := servicesOf(spec)
	if err != nil {
		return nil, err
	}
	if next == nil {
		if next, err = trust.Transport(spec.CABundle, callTimeout); err != nil {
			return nil, err
		}
	}
	return &caller{
		ecs: ecs, sts: sts, transport: &transport{native.Restored{Next: ratelimit.New(native.Throttled{Next: next, Is: isThrottled})}}, own: c, roleARN: spec.RoleARN, now: now,
		turn: semaphore.NewWeighted(1),
	}, nil
}

// A transport sends the requests that the SDK has signed.
type transport struct{ next http.RoundTripper }

// Call sends a request. The SDK passes a transport of its own, which is not used.
func (t *transport) Call(req *http.Request, _ *http.Transport) (*http.Response, error) {
	// The Limiter must not send the request again, because a signature is accepted once. It repeats only a request
	// whose body it can read again.
	req.GetBody = nil
	if req.Body == nil || req.Body == http.NoBody {
		req.Body = io.NopCloser(strings.NewReader(""))
	}
	headers := http.Header{}
	for k, v := range req.Header {
		headers[http.CanonicalHeaderKey(k)] = v
	}
	req.Header = headers
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if _, err := native.Buffer(resp, maxAnswer); err != nil {
		return nil, err
	}
	return resp, nil
}

// isThrottled reports whether an error response is for the rate of calls. The API has other statuses than 429 for it, such as
// 400.
func isThrottled(_ *http.Response, body []byte) bool {
	var answer struct{ Code string }
	return json.Unmarshal(body, &answer) == nil && isThrottling(answer.Code)
}

// call calls ECS. It decodes the response into out.
func (c *caller) call(ctx context.Context, action string, params map[string]string, out any) error {
	creds, err := c.credentials(ctx)
	if err != nil {
		return err
	}
	return c.send(ctx, c.ecs, creds, action, params, out)
}

// account returns the ID of the account, which the Security Token Service knows.
func (c *caller) account(ctx context.Context) (string, error) {
	creds, err := c.credentials(ctx)
	if err != nil {
		return "", err
	}
	var out struct{ AccountId string }
	if err := c.send(ctx, c.sts, creds, "GetCallerIdentity", nil, &out); err != nil {
		return "", err
	}
	if out.AccountId == "" {
		return "", errors.New("the Security Token Service returned no ID of the account")
	}
	return out.AccountId, nil
}

// credentials returns the credentials of the configuration, or of its role.
func (c *caller) credentials(ctx context.Context) (credentials, error) {
	if c.roleARN == "" {
		return c.own, nil
	}
	if err := c.turn.Acquire(ctx, 1); err != nil {
		return credentials{}, err
	}
	defer c.turn.Release(1)
	if c.now().Before(c.ends.Add(-roleMargin)) {
		return c.session, nil
	}
	var out struct {
		Credentials struct {
			AccessKeyId, AccessKeySecret, SecurityToken string
			Expiration                                  time.Time
		}
	}
	err := c.send(ctx, c.sts, c.own, "AssumeRole", map[string]string{"RoleArn": c.roleARN, "RoleSessionName": roleSession, "DurationSeconds": "3600"}, &out)
	if err != nil {
		return credentials{}, err
	}
	s := out.Credentials
	c.session, c.ends = credentials{AccessKeyID: s.AccessKeyId, AccessKeySecret: s.AccessKeySecret, SecurityToken: s.SecurityToken}, s.Expiration
	return c.session, nil
}

// send sends a call. If it is throttled, it waits and sends the call again, with a new signature.
func (c *caller) send(ctx context.Context, s service, creds credentials, action string, params map[string]string, out any) error {
	for attempt := 1; ; attempt++ {
		err := c.sendOnce(ctx, s, creds, action, params, out)
		if e := asAPIError(err); e == nil || !isThrottling(e.Code) || attempt == attempts || ctx.Err() != nil {
			return err
		}
	}
}

func (c *caller) sendOnce(ctx context.Context, s service, creds credentials, action string, params map[string]string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout+patience)
	defer cancel()
	client, err := openapi.NewClient(&models.Config{
		AccessKeyId: &creds.AccessKeyID, AccessKeySecret: &creds.AccessKeySecret, SecurityToken: optional(creds.SecurityToken),
		Endpoint: &s.host, Protocol: &s.scheme, UserAgent: dara.String("drover"), HttpClient: c.transport,
	})
	if err != nil {
		return err
	}
	client.DisableSDKError = dara.Bool(true)
	// The parameters are in the body, and not in the URL as in the SDK of ECS: the user data has a token, and logs
	// and errors have URLs.
	body := map[string]any{}
	for k, v := range params {
		body[k] = v
	}
	result, err := client.CallApiWithCtx(ctx, &models.Params{
		Action: &action, Version: &s.version, Protocol: &s.scheme, Pathname: dara.String("/"), Method: dara.String(http.MethodPost),
		AuthType: dara.String("AK"), Style: dara.String("RPC"), ReqBodyType: dara.String("formData"), BodyType: dara.String("string"),
	}, &models.OpenApiRequest{Body: body}, &dara.RuntimeOptions{})
	if err != nil {
		return apiErrorOf(err)
	}
	text, _ := result["body"].(string)
	if err := json.Unmarshal([]byte(text), out); err != nil {
		return fmt.Errorf("%s: unexpected response: %w", action, err)
	}
	return nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// An apiError is an error response of the API.
type apiError struct {
	Status        int
	Code, Message string
}

func (e *apiError) Error() string {
	return fmt.Sprintf("%s (%s, status %d)", e.Message, e.Code, e.Status)
}

// apiErrorOf returns an error of the SDK as an apiError if it is an error response. The ID of the request is
// left out: it differs in each response, and so would the condition of a VM.
func apiErrorOf(err error) error {
	var e dara.ResponseError
	if !errors.As(err, &e) || e.GetCode() == nil || *e.GetCode() == "" || e.GetStatusCode() == nil {
		return err
	}
	message, _ := e.GetData()["Message"].(string)
	// Some messages repeat the signed string.
	message, _, _ = strings.Cut(message, "server string to sign is:")
	message = strings.TrimRight(strings.TrimSpace(message), ".")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	return &apiError{Status: *e.GetStatusCode(), Code: *e.GetCode(), Message: message}
}

// asAPIError returns the error response in err, or nil if there is none.
func asAPIError(err error) *apiError {
	var e *apiError
	errors.As(err, &e)
	return e
}

// hasCode reports whether err is an error response with the code.
func hasCode(err error, code string) bool {
	e := asAPIError(err)
	return e != nil && e.Code == code
}
