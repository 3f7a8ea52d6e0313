package azure

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// invalidError is of an option.
type invalidError struct{ field, value, allowed string }

func (e *invalidError) Error() string {
	return fmt.Sprintf("%s: invalid value %q: must be %s", e.field, e.value, e.allowed)
}

// answerError is an error that Azure answered with. Its text is the same each time. Azure adds the
// time and the ID of the call, which would change the condition of an inventory at each look.
type answerError struct {
	class, text string
	cause       error
}

func (e *answerError) Error() string { return strings.TrimPrefix(e.class+": "+e.text, ": ") }
func (e *answerError) Unwrap() error { return e.cause }

// describe returns an error of the SDK in one line, which begins with its class.
func describe(err error) error {
	if answer := (*azcore.ResponseError)(nil); errors.As(err, &answer) {
		code, message := textOf(answer.RawResponse)
		return &answerError{class: classOf(answer.StatusCode, code), text: fmt.Sprintf("%d %s", answer.StatusCode, join(cmp.Or(code, answer.ErrorCode), message)), cause: err}
	}
	if refusal := (*azidentity.AuthenticationFailedError)(nil); errors.As(err, &refusal) && refusal.RawResponse != nil {
		code, message := textOf(refusal.RawResponse)
		return &answerError{class: classOfToken(refusal.RawResponse.StatusCode), text: fmt.Sprintf("cannot get a token: %d %s", refusal.RawResponse.StatusCode, join(code, message)), cause: err}
	}
	return err
}

func join(code, message string) string {
	if code == "" || message == "" {
		return code + message
	}
	return code + ": " + message
}

func classOf(status int, code string) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "Throttled"
	case status == http.StatusUnauthorized, status == http.StatusForbidden, code == "NoValidSubscriptionsInQueryRequest":
		return "PermissionDenied"
	}
	return ""
}

// classOfToken returns the class of a refusal by Entra ID, which answers a wrong client ID with
// 400.
func classOfToken(status int) string {
	if status == http.StatusBadRequest {
		status = http.StatusUnauthorized
	}
	return classOf(status, "")
}

// perCall matches the part of an error's description that Entra ID writes per call.
var perCall = regexp.MustCompile(`(?s)\s*(Trace ID|Correlation ID|Timestamp): .*`)

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
		return code, perCall.ReplaceAllString(body.Description, "")
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
