package azuretest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/drover-dev/drover/test/fakes"
)

const (
	// maxPage is the most rows that Resource Graph answers with at once.
	maxPage = 1000
	// queryVersion and permissionsVersion are the versions of the calls that the fake knows.
	queryVersion       = "2024-04-01"
	permissionsVersion = "2022-04-01"
)

func itoa(n int) string { return strconv.Itoa(n) }

type detail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// fail as Azure Resource Manager does: see
// https://github.com/cloud-and-ai-microsoft/resource-provider-contract/blob/master/v1.0/common-api-details.md#error-response-content.
func fail(w http.ResponseWriter, status int, code, message string, details ...detail) {
	e := map[string]any{"code": code, "message": message}
	if len(details) > 0 {
		e["details"] = details
	}
	fakes.AnswerJSON(w, status, map[string]any{"error": e})
}

// Fail answers with an error as Azure Resource Manager does.
func Fail(w http.ResponseWriter, status int, code, message string) { fail(w, status, code, message) }

// failQuery as Resource Graph does: what went wrong is in the details.
func (c *Cloud) failQuery(w http.ResponseWriter, status int, code string, details ...detail) {
	fail(w, status, code, fmt.Sprintf("Please provide below info when asking for support: timestamp = %s, correlationId = %s.", c.opts.Now().UTC().Format("2006-01-02T15:04:05.0000000Z"), uuid.NewString()), details...)
}

// caller of Azure Resource Manager, nil if it was refused.
func (c *Cloud) caller(w http.ResponseWriter, r *http.Request) *identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := bearer(r)
	t, ok := c.tokens[text]
	switch {
	case text == "":
		w.Header().Set("WWW-Authenticate", `Bearer authorization_uri="https://login.windows.net/`+c.opts.Tenant+`", error="invalid_token", error_description="The authentication failed because of missing 'Authorization' header."`)
		fail(w, http.StatusUnauthorized, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.")
	case !ok:
		fail(w, http.StatusUnauthorized, "InvalidAuthenticationToken", "The access token is invalid.")
	case c.opts.Now().After(t.expires):
		fail(w, http.StatusUnauthorized, "ExpiredAuthenticationToken", fmt.Sprintf("The access token expiry UTC time '%s' is earlier than current UTC time '%s'.", t.expires.UTC().Format(time.DateTime), c.opts.Now().UTC().Format(time.DateTime)))
	default:
		return c.identities[t.client]
	}
	return nil
}

// may reports whether an identity has a right in a resource group, or in the whole
// subscription if there is none.
func (i *identity) may(action, group string) bool {
	matches := func(pattern string) bool {
		re := "(?i)^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$"
		return regexp.MustCompile(re).MatchString(action)
	}
	return slices.ContainsFunc(i.assignments, func(a Assignment) bool {
		return (a.ResourceGroup == "" || group != "" && strings.EqualFold(a.ResourceGroup, group)) &&
			slices.ContainsFunc(a.Actions, matches) && !slices.ContainsFunc(a.NotActions, matches)
	})
}

// Authorize reports whether the caller of Azure Resource Manager may carry out an action in a resource group, or at the
// subscription if there is none. It writes the refusal if not.
func (c *Cloud) Authorize(w http.ResponseWriter, r *http.Request, action, group string) bool {
	i := c.caller(w, r)
	if i == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i.may(action, group) {
		return true
	}
	c.forbid(w, i, action, group)
	return false
}

// Visible returns a function that reports whether the caller may carry out an action in a resource group. It is nil if
// Azure Resource Manager refused the caller, which is written then, or if the caller may do so nowhere.
func (c *Cloud) Visible(w http.ResponseWriter, r *http.Request, action string) func(group string) bool {
	i := c.caller(w, r)
	if i == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.ContainsFunc(i.assignments, func(a Assignment) bool { return i.may(action, a.ResourceGroup) }) {
		c.forbid(w, i, action, "")
		return nil
	}
	// A State may call it, which is called with the lock.
	seen := &identity{assignments: slices.Clone(i.assignments)}
	return func(group string) bool { return seen.may(action, group) }
}

// forbid: https://learn.microsoft.com/azure/role-based-access-control/troubleshooting.
func (c *Cloud) forbid(w http.ResponseWriter, i *identity, action, group string) {
	scope := "/subscriptions/" + c.opts.Subscription
	if group != "" {
		scope += "/resourceGroups/" + group
	}
	fail(w, http.StatusForbidden, "AuthorizationFailed", fmt.Sprintf("The client '%s' with object id '%s' does not have authorization to perform action '%s' over scope '%s' or the scope is invalid. If access was recently granted, please refresh your credentials.", i.object, i.object, action, scope))
}

// permissions: https://learn.microsoft.com/rest/api/authorization/permissions.
func (c *Cloud) permissions(w http.ResponseWriter, r *http.Request) {
	i := c.caller(w, r)
	if i == nil {
		return
	}
	if v := r.URL.Query().Get("api-version"); v != permissionsVersion {
		fail(w, http.StatusBadRequest, "InvalidApiVersionParameter", fmt.Sprintf("The api-version '%s' is invalid. The supported versions are '%s'.", v, permissionsVersion))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	const action = "Microsoft.Authorization/permissions/read"
	if !i.may(action, "") {
		c.forbid(w, i, action, "")
		return
	}
	value := []map[string]any{}
	for _, a := range i.assignments {
		if a.ResourceGroup == "" {
			value = append(value, map[string]any{"actions": orNone(a.Actions), "notActions": orNone(a.NotActions), "dataActions": []string{}, "notDataActions": []string{}})
		}
	}
	fakes.AnswerJSON(w, http.StatusOK, map[string]any{"value": value})
}

func orNone(s []string) []string { return append([]string{}, s...) }

// request of a query: https://learn.microsoft.com/rest/api/azureresourcegraph/resourcegraph/resources/resources.
type request struct {
	Query         string   `json:"query"`
	Subscriptions []string `json:"subscriptions"`
	Options       struct {
		ResultFormat string `json:"resultFormat"`
		Top          int    `json:"$top"`
		SkipToken    string `json:"$skipToken"`
	} `json:"options"`
}

// position is the content of a skip token: the offset of the next page and the size of the pages,
// for one query.
type position struct {
	Query    string
	Offset   int
	PageSize int
}

func (c *Cloud) resources(w http.ResponseWriter, r *http.Request, body []byte) {
	i := c.caller(w, r)
	if i == nil || !c.withinQuota(w, i) {
		return
	}
	req := request{}
	if err := json.Unmarshal(body, &req); err != nil || r.URL.Query().Get("api-version") != queryVersion {
		c.failQuery(w, http.StatusBadRequest, "BadRequest", detail{"InvalidRequest", "The request is not valid."})
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(req.Subscriptions, c.opts.Subscription) || len(i.assignments) == 0 {
		c.failQuery(w, http.StatusBadRequest, "BadRequest", detail{"NoValidSubscriptionsInQueryRequest", "There must be at least one subscription that is eligible to contain resources. Given: '" + strings.Join(req.Subscriptions, "','") + "'."})
		return
	}
	q, err := parse(req.Query)
	if err != nil {
		c.failQuery(w, http.StatusBadRequest, "BadRequest", detail{"InvalidQuery", "Query is invalid. Please refer to the documentation for the Azure Resource Graph service and fix the error before retrying."}, detail{"ParserFailure", err.Error()})
		return
	}
	var visible []map[string]any
	for _, row := range c.table() {
		if i.may(spelling[row["type"].(string)]+"/read", row["resourceGroup"].(string)) {
			visible = append(visible, row)
		}
	}
	c.page(w, req, q, q.run(visible))
}

// page: https://learn.microsoft.com/azure/governance/resource-graph/concepts/work-with-data.
func (c *Cloud) page(w http.ResponseWriter, req request, q *query, rows []map[string]any) {
	at := position{Query: req.Query, PageSize: min(c.opts.PageSize, maxPage)}
	if req.Options.Top > 0 {
		at.PageSize = min(at.PageSize, req.Options.Top)
	}
	if req.Options.SkipToken != "" {
		text, err := base64.StdEncoding.DecodeString(req.Options.SkipToken)
		if err != nil || json.Unmarshal(text, &at) != nil || at.Query != req.Query {
			c.failQuery(w, http.StatusBadRequest, "BadRequest", detail{"InvalidSkipToken", "The skip token is invalid."})
			return
		}
	}
	total := len(rows)
	if c.opts.Cut > 0 {
		rows = rows[:min(c.opts.Cut, total)]
	}
	if q.order == "" && at.Offset > 0 {
		slices.Reverse(rows) // Without an order, each page has one of its own.
	}
	begin := min(at.Offset, len(rows))
	end := min(begin+at.PageSize, len(rows))
	answer := map[string]any{"totalRecords": total, "count": end - begin, "data": append([]map[string]any{}, rows[begin:end]...), "facets": []any{}, "resultTruncated": "false"}
	if end < total {
		answer["resultTruncated"] = "true"
	}
	if end < len(rows) && q.has("id") {
		at.Offset = end
		text, err := json.Marshal(at)
		if err != nil {
			panic(err)
		}
		answer["$skipToken"] = base64.StdEncoding.EncodeToString(text)
	}
	fakes.AnswerJSON(w, http.StatusOK, answer)
}

// withinQuota: https://learn.microsoft.com/azure/governance/resource-graph/concepts/guidance-for-throttled-requests.
func (c *Cloud) withinQuota(w http.ResponseWriter, i *identity) bool {
	if c.opts.Quota == 0 {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opts.Now()
	if now.Sub(i.began) >= c.opts.Window {
		i.began, i.used = now, 0
	}
	left := i.began.Add(c.opts.Window).Sub(now)
	seconds := int((left + time.Second - 1) / time.Second)
	w.Header().Set("x-ms-user-quota-resets-after", fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60))
	if i.used >= c.opts.Quota {
		w.Header().Set("x-ms-user-quota-remaining", "0")
		c.failQuery(w, http.StatusTooManyRequests, "RateLimiting", detail{"RateLimiting", "Client application has been throttled and should not attempt to repeat the request until an amount of time has elapsed. Please see https://aka.ms/resourcegraph-throttling for help."})
		return false
	}
	i.used++
	w.Header().Set("x-ms-user-quota-remaining", itoa(c.opts.Quota-i.used))
	return true
}
