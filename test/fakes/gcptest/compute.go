package gcptest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-dev/drover/test/fakes"
)

// Allow reports whether the caller of a method of the Compute API has a permission, and is within the rate limit. If not, it
// answers the call. A method that writes needs a scope that allows it.
func (c *Cloud) Allow(w http.ResponseWriter, r *http.Request, permission string, writes bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	scopes := listScopes
	if writes {
		scopes = writeScopes
	}
	return c.caller(w, r, permission, scopes) && c.withinRate(w)
}

// caller of the Compute API. It reports false if the call was refused.
func (c *Cloud) caller(w http.ResponseWriter, r *http.Request, permission string, scopes []string) bool {
	text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	t, ok := c.tokens[text]
	switch {
	case text == "":
		fail(w, http.StatusUnauthorized, "required", "global", "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.")
	case !ok || c.opts.Now().After(t.expires):
		fail(w, http.StatusUnauthorized, "authError", "global", "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.")
	case !slices.ContainsFunc(t.scopes, func(s string) bool { return slices.Contains(scopes, s) }):
		fail(w, http.StatusForbidden, "insufficientPermissions", "global", "Request had insufficient authentication scopes.")
	case !slices.Contains(c.account(t.email).permissions, permission):
		fail(w, http.StatusForbidden, "forbidden", "global", fmt.Sprintf("Required '%s' permission for 'projects/%s'", permission, c.opts.Project))
	default:
		return true
	}
	return false
}

// missing resource, as that of another project.
func (c *Cloud) missing(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	if len(parts) > 4 && parts[3] == "projects" {
		fail(w, http.StatusNotFound, "notFound", "global", fmt.Sprintf("The resource 'projects/%s' was not found", parts[4]))
		return
	}
	http.NotFound(w, r)
}

// withinRate: https://cloud.google.com/compute/api-quota.
func (c *Cloud) withinRate(w http.ResponseWriter) bool {
	if c.opts.RateLimit == 0 {
		return true
	}
	ok, _, _ := c.bucket.Take(c.opts.Now(), c.opts.RateLimit, c.opts.Refill)
	if !ok {
		fail(w, http.StatusForbidden, "rateLimitExceeded", "usageLimits", "Quota exceeded for quota metric 'Read requests' and limit 'Read requests per minute' of service 'compute.googleapis.com' for consumer 'project_number:123456789012'.")
	}
	return ok
}

// query of a list.
type query struct {
	terms   []term // of which one has to hold, if there are any
	perPage int
	offset  int
	fields  mask
}

// term of a filter: a field, or a label, that has a value, or any.
type term struct {
	label, field, value string
	any                 bool
}

// termText is one of a filter, of the part of the language that the fake understands: terms for
// equality, in brackets and with OR between them if there are several. See the parameter filter in
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/aggregatedList.
var termText = regexp.MustCompile(`^(?:labels\.([a-z0-9_-]+)|(name|status))\s*=\s*"?([A-Za-z0-9_-]*)"?$`)

// anyText is a term for a label with any value.
var anyText = regexp.MustCompile(`^labels\.([a-z0-9_-]+):\*$`)

func parseFilter(text string) ([]term, bool) {
	if text == "" {
		return nil, true
	}
	var terms []term
	parts := strings.Split(text, " OR ")
	for _, part := range parts {
		if len(parts) > 1 || strings.HasPrefix(part, "(") {
			if !strings.HasPrefix(part, "(") || !strings.HasSuffix(part, ")") {
				return nil, false
			}
			part = part[1 : len(part)-1]
		}
		if found := anyText.FindStringSubmatch(part); found != nil {
			terms = append(terms, term{label: found[1], any: true})
			continue
		}
		found := termText.FindStringSubmatch(part)
		if found == nil {
			return nil, false
		}
		terms = append(terms, term{label: found[1], field: found[2], value: found[3]})
	}
	return terms, true
}

func (q query) matches(value map[string]any) bool {
	labels, _ := value["labels"].(map[string]any)
	return len(q.terms) == 0 || slices.ContainsFunc(q.terms, func(t term) bool {
		if t.any {
			_, ok := labels[t.label]
			return ok
		}
		return t.label != "" && labels[t.label] == t.value || t.field != "" && value[t.field] == t.value
	})
}

func (c *Cloud) parse(q url.Values) (out query, field string) {
	var ok bool
	if out.terms, ok = parseFilter(q.Get("filter")); !ok {
		return out, "filter"
	}
	out.perPage = c.opts.PageSize
	if text := q.Get("maxResults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxPage {
			return out, "maxResults"
		}
		if n > 0 {
			out.perPage = min(out.perPage, n)
		}
	}
	if text := q.Get("pageToken"); text != "" {
		position, err := base64.URLEncoding.DecodeString(text)
		if err != nil {
			return out, "pageToken"
		}
		if out.offset, err = strconv.Atoi(string(position)); err != nil {
			return out, "pageToken"
		}
	}
	if out.fields, ok = parseMask(q.Get("fields")); !ok {
		return out, "fields"
	}
	return out, ""
}

var singular = map[string]string{instance: "instance", Disk: "disk", Address: "address"}

// list: https://cloud.google.com/compute/docs/reference/rest/v1/instances/aggregatedList, and the
// same of disks and addresses.
func (c *Cloud) list(w http.ResponseWriter, r *http.Request, collection string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.caller(w, r, "compute."+collection+".list", listScopes) || !c.withinRate(w) {
		return
	}
	q, wrong := c.parse(r.URL.Query())
	if wrong != "" {
		fail(w, http.StatusBadRequest, "invalid", "global", fmt.Sprintf("Invalid value for field '%s': '%s'.", wrong, r.URL.Query().Get(wrong)))
		return
	}
	var found []entry
	for _, e := range c.entries(collection) {
		if q.matches(e.value) && !c.silent[e.scope] {
			found = append(found, e)
		}
	}
	begin := min(q.offset, len(found))
	end := min(begin+q.perPage, len(found))
	answer := map[string]any{
		"kind": "compute#" + singular[collection] + "AggregatedList", "id": "projects/" + c.opts.Project + "/aggregated/" + collection, "items": c.items(collection, found[begin:end]),
		"selfLink": root + c.opts.Project + "/aggregated/" + collection,
	}
	if end < len(found) {
		answer["nextPageToken"] = base64.URLEncoding.EncodeToString([]byte(itoa(end)))
	}
	var unreachable []any
	for scope := range c.silent {
		unreachable = append(unreachable, scope)
	}
	if len(unreachable) > 0 {
		answer["unreachables"] = unreachable
	}
	fakes.AnswerJSON(w, http.StatusOK, q.fields.of(answer))
}

// items of a page by their scope. A scope without any has a warning.
func (c *Cloud) items(collection string, page []entry) map[string]any {
	items := map[string]any{}
	for _, e := range page {
		scoped, ok := items[e.scope].(map[string]any)
		if !ok {
			scoped = map[string]any{collection: []any{}}
			items[e.scope] = scoped
		}
		scoped[collection] = append(scoped[collection].([]any), e.value)
	}
	for _, scope := range c.scopes(collection) {
		switch {
		case c.silent[scope]:
			items[scope] = warning("UNREACHABLE", "Scope '"+scope+"' is unreachable.", scope)
		case items[scope] == nil:
			items[scope] = warning("NO_RESULTS_ON_PAGE", "There are no results for scope '"+scope+"' on this page.", scope)
		}
	}
	return items
}

func (c *Cloud) scopes(collection string) []string {
	var out []string
	if collection == Address {
		for _, r := range c.opts.Regions {
			out = append(out, "regions/"+r)
		}
		return append(out, "global")
	}
	for _, z := range c.opts.Zones {
		out = append(out, "zones/"+z)
	}
	return out
}

func warning(code, message, scope string) map[string]any {
	return map[string]any{"warning": map[string]any{"code": code, "message": message, "data": []any{map[string]any{"key": "scope", "value": scope}}}}
}
