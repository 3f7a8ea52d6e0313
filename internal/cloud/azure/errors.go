package azure

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

// invalidError is of an option.
type invalidError struct{ field, value, allowed string }

func (e *invalidError) Error() string {
	return fmt.Sprintf("%s: invalid value %q: must be %s", e.field, e.value, e.allowed)
}

// describe returns an error of the SDK as an [inventory.CallError]. Its text is the same each time: Azure adds the time and
// the ID of the call, which would change the condition of an inventory at each look.
func describe(err error) error {
	if answer := (*azcore.ResponseError)(nil); errors.As(err, &answer) {
		code, message := textOf(answer.RawResponse)
		return &inventory.CallError{Class: classOf(answer.StatusCode, code), Text: fmt.Sprintf("%d %s", answer.StatusCode, join(cmp.Or(code, answer.ErrorCode), message)), Cause: err}
	}
	if refusal := (*azidentity.AuthenticationFailedError)(nil); errors.As(err, &refusal) && refusal.RawResponse != nil {
		code, message := textOf(refusal.RawResponse)
		return &inventory.CallError{Class: classOfToken(refusal.RawResponse.StatusCode), Text: fmt.Sprintf("cannot get a token: %d %s", refusal.RawResponse.StatusCode, join(code, message)), Cause: err}
	}
	return err
}

func join(code, message string) string {
	if code == "" || message == "" {
		return code + message
	}
	return code + ": " + message
}

func classOf(status int, code string) fn.ErrorCode {
	switch {
	case status == http.StatusTooManyRequests:
		return fn.ErrorThrottled
	case status == http.StatusUnauthorized, status == http.StatusForbidden, code == "NoValidSubscriptionsInQueryRequest":
		return fn.ErrorPermissionDenied
	}
	return ""
}

// classOfToken returns the class of a refusal by Entra ID, which answers a wrong client ID with
// 400.
func classOfToken(status int) fn.ErrorCode {
	if status == http.StatusBadRequest {
		status = http.StatusUnauthorized
	}
	return classOf(status, "")
}

// perCall matches the part of an error's description that Entra ID writes per call.
var perCall = regexp.MustCompile(`(?s)\s*(Trace ID|Correlation ID|Timestamp): .*`)

// StableText returns the description of an error of Entra ID without the part that differs per call.
func StableText(description string) string { return perCall.ReplaceAllString(description, "") }

// textOf returns the error of an answer: of Azure Resource Manager (an object error, whose text
// Resource Graph has in its details), or of Entra ID (error and error_description).
func textOf(r *http.Response) (code, message string) {
	if r == nil {
		return "", ""
	}
	type text struct{ Code, Message string }
	body := struct {
		Error       json.RawMessage `json:"error"`
		Description string          `json:"error_description"`
	}{}
	if payload, err := runtime.Payload(r); err != nil || json.Unmarshal(payload, &body) != nil {
		return "", ""
	}
	if json.Unmarshal(body.Error, &code) == nil {
		return code, StableText(body.Description)
	}
	manager := struct {
		text
		Details []text `json:"details"`
	}{}
	if json.Unmarshal(body.Error, &manager) != nil {
		return "", ""
	}
	if len(manager.Details) > 0 {
		return manager.Details[0].Code, manager.Details[0].Message
	}
	return manager.Code, manager.Message
}
