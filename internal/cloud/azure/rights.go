package azure

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

const permissionsVersion = "2022-04-01"

// permissions are what one role assignment grants: see
// https://learn.microsoft.com/rest/api/authorization/permissions.
type permissions struct {
	Actions    []string `json:"actions"`
	NotActions []string `json:"notActions"`
}

// RequireRights returns an error unless the credentials have the rights at the subscription
// itself: then, and only then, Resource Graph lists all resource groups.
func (a *Subscription) RequireRights(ctx context.Context, actions ...string) error {
	granted, err := a.permissions(ctx)
	if err != nil {
		return err
	}
	for _, action := range actions {
		if !slices.ContainsFunc(granted, func(p permissions) bool { return p.grant(action) }) {
			return &inventory.CallError{Class: fn.ErrorPermissionDenied, Text: fmt.Sprintf(
				"the credentials may not do %s at the subscription %s itself: Azure leaves out what they may not read, so nothing is concluded from its list", action, a.ID)}
		}
	}
	return nil
}

func (a *Subscription) permissions(ctx context.Context) ([]permissions, error) {
	at := runtime.JoinPaths(a.manager.Endpoint(), "/subscriptions/"+url.PathEscape(a.ID)+"/providers/Microsoft.Authorization/permissions") + "?api-version=" + permissionsVersion
	var all []permissions
	for at != "" {
		req, err := runtime.NewRequest(ctx, http.MethodGet, at)
		if err != nil {
			return nil, err
		}
		resp, err := a.manager.Pipeline().Do(req) //nolint:bodyclose // The pipeline reads the body and closes it.
		if err != nil {
			return nil, describe(err)
		}
		if !runtime.HasStatusCode(resp, http.StatusOK) {
			return nil, describe(runtime.NewResponseError(resp))
		}
		page := struct {
			Value    []permissions `json:"value"`
			NextLink string        `json:"nextLink"`
		}{}
		if err := runtime.UnmarshalAsJSON(resp, &page); err != nil {
			return nil, err
		}
		all, at = append(all, page.Value...), page.NextLink
	}
	return all, nil
}

func (p permissions) grant(action string) bool {
	matches := func(pattern string) bool { return matchAction(pattern, action) }
	return slices.ContainsFunc(p.Actions, matches) && !slices.ContainsFunc(p.NotActions, matches)
}

// matchAction reports whether a pattern such as Microsoft.Compute/*/read matches an action. An
// asterisk stands for any text, and upper and lower case are the same.
func matchAction(pattern, action string) bool {
	text := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
	matched, err := regexp.MatchString("(?i)^"+text+"$", action)
	return err == nil && matched
}
