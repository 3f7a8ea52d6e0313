package gcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

// invalidError is of an option.
type invalidError struct{ field, value, allowed string }

func (e *invalidError) Error() string {
	return fmt.Sprintf("%s: invalid value %q: must be %s", e.field, e.value, e.allowed)
}

// describe returns an error of the SDK as an [inventory.CallError].
func describe(err error) error {
	if answer := (*googleapi.Error)(nil); errors.As(err, &answer) {
		reason := ""
		if len(answer.Errors) > 0 {
			reason = answer.Errors[0].Reason + ": "
		}
		return &inventory.CallError{Class: classOf(answer.Code, reasons(answer)), Text: fmt.Sprintf("%d %s%s", answer.Code, reason, answer.Message), Cause: err}
	}
	if refusal := (*oauth2.RetrieveError)(nil); errors.As(err, &refusal) && refusal.Response != nil {
		return describeRefusal(refusal)
	}
	// The URL of the call has its filter and fields, which explain nothing.
	if call := (*url.Error)(nil); errors.As(err, &call) {
		return fmt.Errorf("cannot reach Google Cloud: %w", call.Err)
	}
	return err
}

// describeRefusal of a token: see https://datatracker.ietf.org/doc/html/rfc6749#section-5.2.
func describeRefusal(r *oauth2.RetrieveError) error {
	body := struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}{}
	_ = json.Unmarshal(r.Body, &body) // Without a text, the status is the error.
	status := r.Response.StatusCode
	class := classOf(status, nil)
	if status == http.StatusBadRequest {
		class = fn.ErrorPermissionDenied
	}
	return &inventory.CallError{Class: class, Text: strings.TrimRight(fmt.Sprintf("cannot get a token: %d %s: %s", status, body.Error, body.Description), ": "), Cause: r}
}

func reasons(e *googleapi.Error) []string {
	var out []string
	for _, item := range e.Errors {
		out = append(out, item.Reason)
	}
	return out
}

func classOf(status int, reasons []string) fn.ErrorCode {
	switch {
	case status == http.StatusTooManyRequests, slices.ContainsFunc(reasons, isThrottling):
		return fn.ErrorThrottled
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fn.ErrorPermissionDenied
	}
	return ""
}

// isThrottling reports whether an error with this reason, which has the status 403 or 429, is
// about the rate of the calls.
func isThrottling(reason string) bool {
	return reason == "rateLimitExceeded" || reason == "userRateLimitExceeded"
}
