package alibaba

import (
	"net/http"
	"regexp"
	"strings"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// Codes of errors.
const (
	codeNoInstance  = "InvalidInstanceId.NotFound"
	codeTokenReused = "IdempotentParameterMismatch"
)

// isThrottling reports whether a code means that there were too many calls, such as Throttling.User.
func isThrottling(code string) bool {
	return code == "Throttling" || strings.HasPrefix(code, "Throttling.")
}

// rules are applied in this order, to the code of an error.
var rules = native.Rules{
	{Text: regexp.MustCompile(`^Throttling(\.|$)`), Class: fn.ErrorThrottled},
	{Text: regexp.MustCompile(`^InvalidAccessKeyId|^InvalidAccessKeySecret|^SignatureDoesNotMatch$|^IncompleteSignature$|^InvalidSecurityToken|^MissingSecurityToken$`), Class: fn.ErrorPermissionDenied, Credentials: true},
	{Text: regexp.MustCompile(`^SignatureNonceUsed$|^InvalidTimeStamp\.`), Class: fn.ErrorTransient, Refused: true},
	{Text: regexp.MustCompile(`^QuotaExceed|QuotaExceed|LimitExceed|^InvalidAccountStatus\.NotEnoughBalance$|^Account\.Arrearage$|^InstanceLockedForFinancial`), Class: fn.ErrorQuotaExceeded},
	{Text: regexp.MustCompile(`^OperationDenied(\.NoStock)?$|^Zone\.NotOnSale$|^ResourceNotAvailable$|^InvalidVSwitchId\.IpNotEnough$|^InvalidSpotPriceLimit\.LowerThanPublicPrice$|^InvalidResourceType\.NotSupported$|^DeploymentSet\.NoRoom$`), Class: fn.ErrorCapacityExhausted},
	{Text: regexp.MustCompile(`^Forbidden|^NoPermission|^UnauthorizedOperation|^EntityNotExist\.Role$|^AuthenticationFail|^RealNameAuthentication`), Class: fn.ErrorPermissionDenied},
	// The instance that the token created has other parameters, or its creation failed.
	{Text: regexp.MustCompile(`^` + codeTokenReused + `$`), Class: fn.ErrorTransient, Refused: true},
	{Text: regexp.MustCompile(`^IdempotentProcessing$|^LastTokenProcessing$`), Class: fn.ErrorTransient},
	{Text: regexp.MustCompile(`^IncorrectInstanceStatus|^IncorrectVSwitchStatus|^OperationConflict$`), Class: fn.ErrorTransient, Refused: true},
}

// classify returns an error with a class and a description of the failed action.
func classify(what string, err error) error { return native.Classify(what, err, errorOfAnswer) }

// errorOfAnswer returns the error of an error response, or nil if err is none.
func errorOfAnswer(err error) *native.Error {
	e := asAPIError(err)
	if e == nil {
		return nil
	}
	out := &native.Error{Err: e}
	if rules.Apply(out, e.Code) {
		return out
	}
	switch {
	case e.Status == http.StatusTooManyRequests:
		out.Class = fn.ErrorThrottled
	case e.Status >= http.StatusInternalServerError:
		out.Class = fn.ErrorTransient
	default: // The API returns other 4xx for a request that is wrong.
		out.Class = fn.ErrorInvalidRequest
	}
	return out
}
