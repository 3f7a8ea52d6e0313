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

// A rule assigns a class to the codes of errors that match.
type rule struct {
	code  *regexp.Regexp
	class fn.ErrorCode
	// refused means that the call had no effect. It matters for the class Transient.
	refused bool
	// credentials means that the API does not accept the credentials at all.
	credentials bool
}

// rules are applied in this order.
var rules = []rule{
	{code: regexp.MustCompile(`^Throttling(\.|$)`), class: fn.ErrorThrottled},
	{code: regexp.MustCompile(`^InvalidAccessKeyId|^InvalidAccessKeySecret|^SignatureDoesNotMatch$|^IncompleteSignature$|^InvalidSecurityToken|^MissingSecurityToken$`), class: fn.ErrorPermissionDenied, credentials: true},
	{code: regexp.MustCompile(`^SignatureNonceUsed$|^InvalidTimeStamp\.`), class: fn.ErrorTransient, refused: true},
	{code: regexp.MustCompile(`^QuotaExceed|QuotaExceed|LimitExceed|^InvalidAccountStatus\.NotEnoughBalance$|^Account\.Arrearage$|^InstanceLockedForFinancial`), class: fn.ErrorQuotaExceeded},
	{code: regexp.MustCompile(`^OperationDenied(\.NoStock)?$|^Zone\.NotOnSale$|^ResourceNotAvailable$|^InvalidVSwitchId\.IpNotEnough$|^InvalidSpotPriceLimit\.LowerThanPublicPrice$|^InvalidResourceType\.NotSupported$|^DeploymentSet\.NoRoom$`), class: fn.ErrorCapacityExhausted},
	{code: regexp.MustCompile(`^Forbidden|^NoPermission|^UnauthorizedOperation|^EntityNotExist\.Role$|^AuthenticationFail|^RealNameAuthentication`), class: fn.ErrorPermissionDenied},
	// The instance that the token created has other parameters, or its creation failed.
	{code: regexp.MustCompile(`^` + codeTokenReused + `$`), class: fn.ErrorTransient, refused: true},
	{code: regexp.MustCompile(`^IdempotentProcessing$|^LastTokenProcessing$`), class: fn.ErrorTransient},
	{code: regexp.MustCompile(`^IncorrectInstanceStatus|^IncorrectVSwitchStatus|^OperationConflict$`), class: fn.ErrorTransient, refused: true},
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
	for _, r := range rules {
		if r.code.MatchString(e.Code) {
			out.Class, out.Refused, out.Credentials = r.class, r.refused, r.credentials
			return out
		}
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
