package vcd

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/drover-dev/drover/apis/vcd/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

const (
	// callTimeout is the timeout of a call.
	callTimeout = 20 * time.Second
	// defaultPort is the port of Cloud Director.
	defaultPort = "443"
	// apiVersion is the version of the API.
	apiVersion = "37.0"
	// maxAnswer is the maximum size of a response in bytes.
	maxAnswer = 64 << 20
	// pageSize is the number of entries of a page: the API allows at most 128.
	pageSize = 128
	// maxPages bounds a list.
	maxPages = 1000
)

// Paths of the API.
const (
	pathSessions = "/cloudapi/1.0.0/sessions"
	pathSession  = "/cloudapi/1.0.0/sessions/current"
	pathToken    = "/oauth/tenant/%s/token"
	pathPolicies = "/cloudapi/1.0.0/vdcs/%s/computePolicies"
	pathQuery    = "/api/query"
	pathVM       = "/api/vApp/vm-"
	pathVApp     = "/api/vApp/vapp-"
	pathTask     = "/api/task/"
)

// tokenHeader is the header with the access token of a new session.
const tokenHeader = "X-Vmware-Vcloud-Access-Token"

// credentials are the content of a configuration's Secret.
type credentials struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	APIToken string `json:"apiToken,omitempty"`
}

func (c credentials) validate() error {
	switch {
	case c.APIToken != "" && (c.Username != "" || c.Password != ""):
		return errors.New("credentials: set apiToken, or username and password, not both")
	case c.APIToken != "":
		return nil
	case c.Username == "" || strings.Contains(c.Username, ":"):
		return errors.New("credentials: username: must not be empty without apiToken, and must not contain a colon")
	case c.Password == "":
		return errors.New("credentials: password: must not be empty without apiToken")
	}
	return nil
}

// A session is a session of a user.
type session struct {
	token string
	// Organization and User are the IDs of the organization and of the user.
	Organization, User string
}

// A director is a client of Cloud Director.
type director struct {
	api          native.API
	organization string
	credentials  credentials

	// turn is held during a login, and guards current.
	turn    *semaphore.Weighted
	current session
}

// newClient returns a client of the server. It makes no call.
func newClient(spec v1alpha1.ProviderConfigSpec, c credentials, next http.RoundTripper) (*director, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	base, err := native.ServerURL(spec.Server, defaultPort)
	if err != nil {
		return nil, err
	}
	client, err := native.NewHTTPClient(next, spec.CABundle, spec.InsecureSkipVerify, callTimeout, time.Now)
	if err != nil {
		return nil, err
	}
	return &director{
		organization: spec.Organization, credentials: c, turn: semaphore.NewWeighted(1),
		api: native.API{Base: base, HTTP: client, MaxResponse: maxAnswer, ErrorOf: func(status int, body []byte) error { return errorOf(status, body) }},
	}, nil
}

// An apiError is an error response of the API.
type apiError struct {
	Status int
	// Code is the minor code of the error, such as BUSY_ENTITY. It is empty if Cloud Director did not write the response.
	Code    string
	Message string
	// login means that the response refuses the credentials.
	login bool
}

func (e *apiError) Error() string {
	text := e.Message
	if text == "" {
		text = http.StatusText(e.Status)
	}
	if e.Status == 0 {
		return fmt.Sprintf("%s (%s)", text, e.Code)
	}
	if e.Code == "" {
		return fmt.Sprintf("%s (status %d)", text, e.Status)
	}
	return fmt.Sprintf("%s (status %d, %s)", text, e.Status, e.Code)
}

// asAPIError returns the error response in err, or nil if there is none.
func asAPIError(err error) *apiError {
	var e *apiError
	errors.As(err, &e)
	return e
}

// Codes of errors.
const (
	codeForbidden = "ACCESS_TO_RESOURCE_IS_FORBIDDEN"
	codeNotFound  = "RESOURCE_NOT_FOUND"
	codeBusy      = "BUSY_ENTITY"
	codeLimits    = "OPERATION_LIMITS_EXCEEDED"
)

// isInvisible reports whether err means that the user sees no object with the ID of the call: there is none, or the user
// has no access to it. A status 403 or 404 without a code is of a proxy, and proves nothing.
func isInvisible(err error) bool {
	e := asAPIError(err)
	return e != nil && (e.Status == http.StatusForbidden || e.Status == http.StatusNotFound) && (e.Code == codeForbidden || e.Code == codeNotFound)
}

// A request is a call of the API.
type request struct {
	method, path string
	query        url.Values
	// contentType is the type of the body, without its prefix and suffix, such as "vm".
	contentType string
	body        any
	// json means that the response is JSON.
	json bool
}

// do makes a call, and decodes the response into out unless that is nil. If the session has expired, do logs in and makes
// the call again: a call that was refused with 401 had no effect.
func (d *director) do(ctx context.Context, r request, out any) error {
	s, err := d.login(ctx, "")
	if err != nil {
		return err
	}
	err = d.send(ctx, r, s.token, out)
	if e := asAPIError(err); e == nil || e.Status != http.StatusUnauthorized {
		return err
	}
	if s, err = d.login(ctx, s.token); err != nil {
		return err
	}
	return d.send(ctx, r, s.token, out)
}

func (d *director) send(ctx context.Context, r request, token string, out any) error {
	var body []byte
	if r.body != nil {
		b, err := xml.Marshal(r.body)
		if err != nil {
			return err
		}
		body = append([]byte(xml.Header), b...)
	}
	req, err := d.newRequest(ctx, r.method, r.path, r.query, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if r.json {
		req.Header.Set("Accept", "application/json;version="+apiVersion)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/vnd.vmware.vcloud."+r.contentType+"+xml")
	}
	b, _, err := d.api.Do(req)
	if err != nil || out == nil {
		return err
	}
	if r.json {
		err = json.Unmarshal(b, out)
	} else {
		err = xml.Unmarshal(b, out)
	}
	if err != nil {
		return fmt.Errorf("the response is not valid: %w", err)
	}
	return nil
}

func (d *director) newRequest(ctx context.Context, method, path string, query url.Values, body []byte) (*http.Request, error) {
	req, err := d.api.NewRequest(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/*+xml;version="+apiVersion)
	return req, nil
}

// An errorElement is the error of a response or a task.
type errorElement struct {
	Message string `xml:"message,attr" json:"message"`
	Code    string `xml:"minorErrorCode,attr" json:"minorErrorCode"`
}

// requestID is the ID of a request at the beginning of a message. It differs in each response, and so would the
// condition of a VM.
var requestID = regexp.MustCompile(`^\[ ?[^\]]* ?\] *`)

// errorOf returns the error in a response, which is XML or JSON. The response of a proxy is neither.
func errorOf(status int, body []byte) *apiError {
	var e struct {
		XMLName xml.Name `xml:"Error" json:"-"`
		errorElement
		// OAuth 2.0 has these.
		OAuthCode        string `xml:"-" json:"error"`
		OAuthDescription string `xml:"-" json:"error_description"`
	}
	if xml.Unmarshal(body, &e) != nil && json.Unmarshal(body, &e) != nil {
		return &apiError{Status: status}
	}
	if e.Code == "" {
		e.Code, e.Message = e.OAuthCode, e.OAuthDescription
	}
	return &apiError{Status: status, Code: e.Code, Message: requestID.ReplaceAllString(e.Message, "")}
}

// login returns the session. It begins a new one if there is none, or if the token of the current one is refused.
func (d *director) login(ctx context.Context, refused string) (session, error) {
	if err := d.turn.Acquire(ctx, 1); err != nil {
		return session{}, err
	}
	defer d.turn.Release(1)
	if d.current.token != "" && d.current.token != refused {
		return d.current, nil
	}
	d.current = session{}
	s, err := d.begin(ctx)
	if e := asAPIError(err); e != nil {
		e.login = e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden || e.Code == "invalid_grant"
	}
	if err != nil {
		return session{}, err
	}
	d.current = s
	return s, nil
}

// begin begins a session.
func (d *director) begin(ctx context.Context) (session, error) {
	var s session
	var body []byte
	var err error
	if d.credentials.APIToken != "" {
		if s.token, err = d.accessToken(ctx); err != nil {
			return s, err
		}
		req, err := d.newRequest(ctx, http.MethodGet, pathSession, nil, nil)
		if err != nil {
			return s, err
		}
		req.Header.Set("Accept", "application/json;version="+apiVersion)
		req.Header.Set("Authorization", "Bearer "+s.token)
		if body, _, err = d.api.Do(req); err != nil {
			return s, err
		}
	} else {
		req, err := d.newRequest(ctx, http.MethodPost, pathSessions, nil, nil)
		if err != nil {
			return s, err
		}
		req.Header.Set("Accept", "application/json;version="+apiVersion)
		req.SetBasicAuth(d.credentials.Username+"@"+d.organization, d.credentials.Password)
		var header http.Header
		if body, header, err = d.api.Do(req); err != nil {
			return s, err
		}
		s.token = header.Get(tokenHeader)
	}
	var answer struct {
		User struct {
			ID string `json:"id"`
		} `json:"user"`
		Org struct {
			ID string `json:"id"`
		} `json:"org"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return s, fmt.Errorf("the response is not valid: %w", err)
	}
	s.Organization, s.User = answer.Org.ID, answer.User.ID
	if s.token == "" || s.Organization == "" {
		return s, errors.New("the response to the login has no token or no organization")
	}
	return s, nil
}

// accessToken returns an access token for the API token. The token of a service account is refused: it changes with each
// use, so that the Secret would have an old one after a restart.
func (d *director) accessToken(ctx context.Context) (string, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {d.credentials.APIToken}}.Encode()
	req, err := d.newRequest(ctx, http.MethodPost, fmt.Sprintf(pathToken, url.PathEscape(d.organization)), nil, []byte(form))
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	b, _, err := d.api.Do(req)
	if err != nil {
		return "", err
	}
	var answer struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return "", fmt.Errorf("the response is not valid: %w", err)
	}
	if answer.RefreshToken != "" && answer.RefreshToken != d.credentials.APIToken {
		return "", &apiError{
			Status: http.StatusForbidden, Code: "SERVICE_ACCOUNT",
			Message: "credentials: apiToken: this is the token of a service account, which changes with each use: use the API token of a user",
		}
	}
	return answer.AccessToken, nil
}

// logout ends the session.
func (d *director) logout(ctx context.Context) error {
	if err := d.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer d.turn.Release(1)
	if d.current.token == "" {
		return nil
	}
	s := d.current
	d.current = session{}
	return d.send(ctx, request{method: http.MethodDelete, path: pathSession, json: true}, s.token, nil)
}

// start makes a call that starts a task, and returns the UUID of the task.
func (d *director) start(ctx context.Context, r request) (string, error) {
	var t task
	if err := d.do(ctx, r, &t); err != nil {
		return "", err
	}
	if t.uuid() == "" {
		return "", errors.New("the response has no task")
	}
	return t.uuid(), nil
}

// A filter is a condition of a query: the attribute equals the value.
type filter struct{ attribute, value string }

// query reads all records of a type that meet the conditions, in pages. It reads the records from a page with next. The
// second value is false if the list changed meanwhile, so that a record may be missing.
func query[T any](ctx context.Context, d *director, kind string, filters []filter, fields []string, next func(*records) []T, id func(T) string) ([]T, bool, error) {
	var terms []string
	for _, f := range filters {
		terms = append(terms, f.attribute+"=="+url.QueryEscape(f.value))
	}
	var out []T
	seen := map[string]bool{}
	for page := 1; page <= maxPages; page++ {
		q := url.Values{"type": {kind}, "format": {"records"}, "page": {strconv.Itoa(page)}, "pageSize": {strconv.Itoa(pageSize)}}
		if len(terms) > 0 {
			q.Set("filter", strings.Join(terms, ";"))
			q.Set("filterEncoded", "true")
		}
		if len(fields) > 0 {
			q.Set("fields", strings.Join(fields, ","))
		}
		var answer records
		if err := d.do(ctx, request{method: http.MethodGet, path: pathQuery, query: q}, &answer); err != nil {
			return nil, false, err
		}
		got := next(&answer)
		for _, e := range got {
			if !seen[id(e)] {
				seen[id(e)] = true
				out = append(out, e)
			}
		}
		// A page beyond the last one is an error.
		if len(got) < pageSize || page*pageSize >= answer.Total {
			return out, len(out) == answer.Total, nil
		}
	}
	return out, false, nil
}
