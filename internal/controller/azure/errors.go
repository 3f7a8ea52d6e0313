package azure

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	cloudazure "github.com/drover-dev/drover/internal/cloud/azure"
	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/ratelimit"
	"github.com/drover-dev/drover/internal/text"
)

// maxMessage is the maximum length of the message of an error.
const maxMessage = 512

// codeNotAllowed is the code for a quota that is used up, among others.
const codeNotAllowed = "OperationNotAllowed"

// rules assign classes to the codes of error responses and of failed operations: see
// https://learn.microsoft.com/troubleshoot/azure/virtual-machines/error-codes and
// https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors.
var rules = native.Rules{
	{Text: regexp.MustCompile(`^(TooManyRequests|SubscriptionRequestsThrottled|ResourceCollectionRequestsThrottled|OperationNotAllowedThrottled|RateLimiting)$`), Class: fn.ErrorThrottled},
	{Text: regexp.MustCompile(`^((Zonal)?AllocationFailed|AllocationTimeout|Overconstrained(Zonal)?AllocationRequest|SkuNotAvailable|SubnetIsFull|SubnetsAreFull|PublicIPPrefixExhausted|CapacityReservation\w*Exceeded|InsufficientCapacity\w*|DedicatedHostAllocationFailed|ZoneNotAvailableForSubscription|SpotPriceGreaterThanProvidedMaxPrice)$`), Class: fn.ErrorCapacityExhausted},
	{Text: regexp.MustCompile(`^(\w*QuotaExceeded|\w*CountLimitReached|\w*LimitExceeded|ResourceCountExceedsLimit\w*|PublicIPCountLimitReached|SubscriptionQuota\w*)$`), Class: fn.ErrorQuotaExceeded},
	{Text: regexp.MustCompile(`^(InvalidAuthenticationToken\w*|ExpiredAuthenticationToken|AuthenticationFailed)$`), Class: fn.ErrorPermissionDenied, Credentials: true},
	{Text: regexp.MustCompile(`^(\w*AuthorizationFailed|AuthorizationPermissionMismatch|RequestDisallowedBy\w+|SubscriptionNotFound|SubscriptionNotRegistered|MissingSubscriptionRegistration|ReadOnlyDisabledSubscription|DisallowedProvider|MarketplacePurchaseEligibilityFailed|ScopeLocked)$`), Class: fn.ErrorPermissionDenied},
	{Text: regexp.MustCompile(`^(RetryableError\w*|AnotherOperationInProgress|OperationPreempted|OperationPreemptedByDelete|ReferencedResourceNotProvisioned|NicReservedForAnotherVm|NicInUse\w*|PublicIPAddressInUse|PublicIPAddressCannotBeDeleted|DiskInUse|AttachDiskWhileBeingDetached|ConcurrentDiskUpdate|InternalExecutionError|InternalServerError|InternalOperationError|ServerTimeout|NetworkingInternalOperationError|CRPNotAvailableToClient|VMStartTimedOut|OSProvisioning\w+)$`), Class: fn.ErrorTransient, Refused: true},
}

// quotaText matches the message of the code OperationNotAllowed that is about a quota: the code has other causes as well.
var quotaText = regexp.MustCompile(`(?i)quota`)

// classOfCode returns the class of a code, and false if it is not known.
func classOfCode(out *native.Error, codes []string, message string) bool {
	for _, code := range codes {
		if code == codeNotAllowed && quotaText.MatchString(message) {
			out.Class = fn.ErrorQuotaExceeded
			return true
		}
	}
	return rules.Apply(out, codes...)
}

// classify returns an error with a class and a description of the failed call.
func classify(what string, err error) error { return native.Classify(what, err, errorOfAnswer) }

// errorOfAnswer returns the error of a response of Azure, or nil if err is none.
func errorOfAnswer(err error) *native.Error {
	var refusal *azidentity.AuthenticationFailedError
	if errors.As(err, &refusal) {
		return errorOfToken(refusal)
	}
	var e *azcore.ResponseError
	if errors.As(err, &e) {
		return errorOfCall(e)
	}
	var inventoried *inventory.CallError
	if errors.As(err, &inventoried) && inventoried.Class != "" {
		return &native.Error{Class: inventoried.Class, Err: errors.New(inventoried.Text), Refused: true}
	}
	if ratelimit.Unsent(err) {
		return &native.Error{Class: fn.ErrorThrottled, Err: unwrapped(err), Refused: true}
	}
	// The URL of a call explains nothing, and that of the console is a secret.
	var call *url.Error
	if errors.As(err, &call) {
		return &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("cannot reach Azure: %w", call.Err)}
	}
	return nil
}

// unwrapped returns an error without the URL of its call.
func unwrapped(err error) error {
	var call *url.Error
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}

func errorOfCall(e *azcore.ResponseError) *native.Error {
	codes, message := bodyOf(e.RawResponse)
	if len(codes) == 0 && e.ErrorCode != "" {
		codes = []string{e.ErrorCode}
	}
	out := &native.Error{Err: &answerError{status: e.StatusCode, codes: codes, message: message}}
	switch {
	case e.StatusCode == http.StatusUnauthorized:
		out.Class, out.Credentials = fn.ErrorPermissionDenied, true
	case e.StatusCode == http.StatusTooManyRequests:
		out.Class = fn.ErrorThrottled
	case classOfCode(out, codes, message):
		// A server that fails may have carried out the request.
		out.Refused = out.Refused && e.StatusCode < http.StatusInternalServerError
	case e.StatusCode == http.StatusForbidden:
		out.Class = fn.ErrorPermissionDenied
	case e.StatusCode >= http.StatusInternalServerError, e.StatusCode == http.StatusRequestTimeout:
		out.Class = fn.ErrorTransient
	default: // Azure returns other 4xx for a request that is wrong.
		out.Class = fn.ErrorInvalidRequest
	}
	return out
}

// bodyOf returns the codes and the message of an error response: see
// https://github.com/cloud-and-ai-microsoft/resource-provider-contract/blob/master/v1.0/common-api-details.md#error-response-content.
func bodyOf(r *http.Response) (codes []string, message string) {
	if r == nil {
		return nil, ""
	}
	type detail struct{ Code, Message string }
	var body struct {
		Error struct {
			detail
			Details []detail `json:"details"`
		} `json:"error"`
	}
	payload, err := runtime.Payload(r)
	if err != nil || json.Unmarshal(payload, &body) != nil {
		return nil, ""
	}
	message = body.Error.Message
	for _, d := range append([]detail{body.Error.detail}, body.Error.Details...) {
		if d.Code != "" {
			codes = append(codes, d.Code)
		}
		if message == "" {
			message = d.Message
		}
	}
	return codes, message
}

// unsentToken is a part of the text of a call for a token that the rate limiter did not send. The SDK keeps only the text.
const unsentToken = "Throttled: too many requests to"

// errorOfToken returns the error of a refused token. The call that needed it was not sent.
func errorOfToken(r *azidentity.AuthenticationFailedError) *native.Error {
	out := &native.Error{Class: fn.ErrorTransient, Refused: true, Err: errors.New("cannot get a token: Entra ID does not answer")}
	if r.RawResponse == nil {
		if strings.Contains(r.Error(), unsentToken) {
			out.Class, out.Err = fn.ErrorThrottled, errors.New("cannot get a token: too many requests to Entra ID")
		}
		return out
	}
	var body struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if payload, err := runtime.Payload(r.RawResponse); err == nil {
		_ = json.Unmarshal(payload, &body) // Without a text, the status is the error.
	}
	message := cloudazure.StableText(body.Description)
	if message == "" {
		message = "no reason is given"
	}
	status := r.RawResponse.StatusCode
	answer := &answerError{status: status, message: message}
	if body.Error != "" {
		answer.codes = []string{body.Error}
	}
	out.Err = fmt.Errorf("cannot get a token: %w", answer)
	switch {
	case status == http.StatusTooManyRequests:
		out.Class = fn.ErrorThrottled
	case status < http.StatusInternalServerError:
		out.Class, out.Credentials = fn.ErrorPermissionDenied, true
	}
	return out
}

// An answerError is an error response in one line.
type answerError struct {
	status  int
	codes   []string
	message string
}

func (e *answerError) Error() string {
	message := firstLine(strings.TrimSpace(e.message))
	if len(e.codes) == 0 {
		return fmt.Sprintf("%s (status %d)", message, e.status)
	}
	return fmt.Sprintf("%s (%s, status %d)", message, strings.Join(e.codes, ", "), e.status)
}

// firstLine of a message, shortened.
func firstLine(message string) string {
	line, _, _ := strings.Cut(strings.ReplaceAll(message, "\r\n", "\n"), "\n")
	return text.Shorten(line, maxMessage)
}

// hasStatus reports whether an error is a response with a status.
func hasStatus(err error, status int) bool {
	var e *azcore.ResponseError
	return errors.As(err, &e) && e.StatusCode == status
}

// isConflict reports whether a creation was refused because a VM of the name exists. The code is the answer of an API that
// ignores the condition, such as one of Azure Stack Hub: custom data cannot be changed.
func isConflict(err error) bool {
	var e *azcore.ResponseError
	return errors.As(err, &e) && (e.StatusCode == http.StatusPreconditionFailed || e.ErrorCode == "PropertyChangeNotAllowed")
}

// errorOfCreation returns the error of a VM whose creation failed after Azure accepted it. The statuses of its instance
// view have a code such as ProvisioningState/failed/AllocationFailed.
func errorOfCreation(statuses []*armcompute.InstanceViewStatus) error {
	const failed = "ProvisioningState/failed"
	out := &native.Error{Class: fn.ErrorTransient}
	code, message := "", "Azure gives no reason"
	for _, s := range statuses {
		if s == nil || s.Code == nil || !strings.HasPrefix(strings.ToLower(*s.Code), strings.ToLower(failed)) {
			continue
		}
		code = strings.TrimPrefix((*s.Code)[len(failed):], "/")
		if s.Message != nil && *s.Message != "" {
			message = firstLine(*s.Message)
		}
	}
	classOfCode(out, []string{code}, message)
	if code != "" {
		message = code + ": " + message
	}
	return native.TaskError(out.Class, "create", message)
}
