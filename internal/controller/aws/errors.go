package aws

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// Codes of errors.
const (
	codeNoInstance    = "InvalidInstanceID.NotFound"
	codeTokenMismatch = "IdempotentParameterMismatch"
	codeUnsupported   = "UnsupportedOperation"
	codeAuthFailure   = "AuthFailure"
)

// maxMessage is the maximum length of the message of an error in bytes.
const maxMessage = 512

// throttlings are the codes for too many calls.
var throttlings = []string{"RequestLimitExceeded", "Throttling", "ThrottlingException", "RequestThrottled", "TooManyRequestsException", "EC2ThrottledException"}

func isThrottling(code string) bool { return slices.Contains(throttlings, code) }

// A rule assigns a class to the codes of errors that match.
type rule struct {
	code  *regexp.Regexp
	class fn.ErrorCode
	// refused means that the call had no effect. It matters for the class Transient.
	refused bool
	// credentials means that AWS does not accept the credentials at all.
	credentials bool
}

// rules are applied in this order. The codes are those of the page "Error codes for the Amazon EC2 API", and of the
// Security Token Service.
var rules = []rule{
	{code: regexp.MustCompile(`^(` + strings.Join(throttlings, "|") + `)$`), class: fn.ErrorThrottled},
	{code: regexp.MustCompile(`^(InvalidClientTokenId|UnrecognizedClientException|SignatureDoesNotMatch|ExpiredToken(Exception)?|InvalidIdentityToken|MissingAuthenticationToken|IncompleteSignature)$`), class: fn.ErrorPermissionDenied, credentials: true},
	{code: regexp.MustCompile(`^RequestExpired$`), class: fn.ErrorTransient, refused: true},
	{code: regexp.MustCompile(`^(Insufficient(Instance|Host|ReservedInstance|Address|Volume)Capacity|InsufficientCapacity(OnHost)?|Insufficient(FreeAddressesInSubnet|Capacity)|SpotMaxPriceTooLow|ReservationCapacityExceeded|InsufficientCapacityInReservation|capacity-not-available)$`), class: fn.ErrorCapacityExhausted},
	{code: regexp.MustCompile(`LimitExceeded$|^MaxSpotInstanceCountExceeded$|^MaxIOPSLimitExceeded$|^(Host|Tag)LimitExceeded$`), class: fn.ErrorQuotaExceeded},
	{code: regexp.MustCompile(`^(UnauthorizedOperation|AccessDenied(Exception)?|AuthFailure(\..+)?|OptInRequired|PendingVerification|Blocked|OperationNotPermitted|ServiceLinkedRoleNotFound|Client\.UnauthorizedOperation)$`), class: fn.ErrorPermissionDenied},
	// The instance of the token was created with other parameters. This request had no effect.
	{code: regexp.MustCompile(`^` + codeTokenMismatch + `$`), class: fn.ErrorTransient, refused: true},
	{code: regexp.MustCompile(`^(IncorrectInstanceState|IncorrectState|IncorrectSpotRequestState|OperationInProgress|ConcurrentModification)$`), class: fn.ErrorTransient, refused: true},
}

// classify returns an error with a class and a description of the failed action.
func classify(what string, err error) error { return native.Classify(what, err, errorOfAnswer) }

// errorOfAnswer returns the error of an error response, or nil if err is none.
func errorOfAnswer(err error) *native.Error {
	code, status, message := answerIn(err)
	if code == "" {
		return unsent(err)
	}
	out := &native.Error{Err: fmt.Errorf("%s (%s, status %d)", message, code, status)}
	for _, r := range rules {
		if r.code.MatchString(code) {
			out.Class, out.Refused = r.class, r.refused
			// EC2 also returns AuthFailure for an image that is not shared with the account, with the status 403.
			out.Credentials = r.credentials || code == codeAuthFailure && status == http.StatusUnauthorized
			return out
		}
	}
	switch {
	case status == http.StatusTooManyRequests:
		out.Class = fn.ErrorThrottled
	case status >= http.StatusInternalServerError, status == 0:
		out.Class = fn.ErrorTransient
	default: // EC2 returns other 4xx for a request that is wrong.
		out.Class = fn.ErrorInvalidRequest
	}
	return out
}

// answerIn returns the parts of the error response in err. The code is empty if there is none. The ID of the request is
// left out: it differs in each response, and so would the condition of a VM.
func answerIn(err error) (code string, status int, message string) {
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() == "" {
		return "", 0, ""
	}
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) {
		status = resp.HTTPStatusCode()
	}
	code = api.ErrorCode()
	if code == "UnknownError" { // The SDK's word for a response without a code.
		return "", 0, ""
	}
	message, _, _ = strings.Cut(api.ErrorMessage(), "Encoded authorization failure message:")
	message = strings.TrimRight(strings.TrimSpace(message), ".")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	return code, status, message
}

// unsent returns the error of a call that was not sent because there are no credentials, or nil for any other error.
func unsent(err error) *native.Error {
	var sent *smithyhttp.RequestSendError
	if errors.As(err, &sent) || !strings.Contains(err.Error(), "get identity: ") && !strings.Contains(err.Error(), "failed to refresh cached credentials") {
		return nil
	}
	return &native.Error{Class: fn.ErrorPermissionDenied, Err: errors.New("there are no credentials: " + short(err)), Refused: true, Credentials: true}
}

// short returns the innermost error, without the calls that led to it.
func short(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err.Error()
}

// hasCode reports whether err is an error response with one of the codes.
func hasCode(err error, codes ...string) bool {
	code, _, _ := answerIn(err)
	return code != "" && slices.Contains(codes, code)
}

// ends are the classes of the reasons for which EC2 terminates an instance before it runs, as the documentation of
// StateReason lists them.
var ends = map[string]fn.ErrorCode{
	"Server.InsufficientInstanceCapacity": fn.ErrorCapacityExhausted,
	"Server.SpotInstanceTermination":      fn.ErrorCapacityExhausted,
	"Server.SpotInstanceShutdown":         fn.ErrorCapacityExhausted,
	"Client.VolumeLimitExceeded":          fn.ErrorQuotaExceeded,
	"Client.InvalidSnapshot.NotFound":     fn.ErrorInvalidRequest,
	// The role may not use the KMS key of an encrypted volume, for example.
	"Client.InternalError": fn.ErrorPermissionDenied,
}

// endOf returns the error of an instance that EC2 terminated before it ran.
func endOf(i types.Instance) error {
	class, text := fn.ErrorTransient, textOf(i)
	if i.StateReason != nil {
		if known, ok := ends[aws.ToString(i.StateReason.Code)]; ok {
			class = known
		}
	}
	return &native.Error{Class: class, Err: fmt.Errorf("EC2 terminated instance %s before it ran: %s", aws.ToString(i.InstanceId), text), Refused: true}
}
