package target

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxFailure is how much of the body of a failure is read.
	maxFailure = 64 << 10

	// maxCauseText is how much of the text of a cause is kept.
	maxCauseText = 256
)

var (
	errRedirect = errors.New("it answers with a redirect, which is not followed")
	errEncoded  = errors.New("it answers with a content encoding that was not requested")
)

// knownReasons are the reasons of a Kubernetes API server. Any other text is not repeated.
var knownReasons = []metav1.StatusReason{
	metav1.StatusReasonUnauthorized, metav1.StatusReasonForbidden, metav1.StatusReasonNotFound, metav1.StatusReasonAlreadyExists,
	metav1.StatusReasonConflict, metav1.StatusReasonGone, metav1.StatusReasonInvalid, metav1.StatusReasonServerTimeout,
	metav1.StatusReasonStoreReadError, metav1.StatusReasonTimeout, metav1.StatusReasonTooManyRequests, metav1.StatusReasonBadRequest,
	metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonNotAcceptable, metav1.StatusReasonRequestEntityTooLarge,
	metav1.StatusReasonUnsupportedMediaType, metav1.StatusReasonInternalError, metav1.StatusReasonExpired, metav1.StatusReasonServiceUnavailable,
}

// knownCauses are the causes that a drain reports to the user.
var knownCauses = []metav1.CauseType{policyv1.DisruptionBudgetCause, corev1.NamespaceTerminatingCause}

// answers passes the responses of an API server, and replaces the text of failures. The server may be any that
// the provider can reach, and its text must not get into a status, an event or a log.
type answers struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := a.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if refused := refuseAnswer(res); refused != nil {
		_ = res.Body.Close()
		return nil, refused
	}
	if res.StatusCode >= http.StatusOK && res.StatusCode < http.StatusMultipleChoices {
		return res, nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxFailure))
	_ = res.Body.Close()
	if err != nil {
		return nil, err
	}
	return inOwnWords(res, body)
}

// WrappedRoundTripper lets the connections below be closed.
func (a answers) WrappedRoundTripper() http.RoundTripper { return a.next }

func refuseAnswer(res *http.Response) error {
	switch encoding := res.Header.Get("Content-Encoding"); {
	case encoding != "" && encoding != "identity":
		return errEncoded
	case res.StatusCode < http.StatusOK, res.StatusCode >= http.StatusMultipleChoices && res.StatusCode < http.StatusBadRequest:
		return errRedirect
	}
	return nil
}

// inOwnWords returns a failure with the status code, and with a reason that Kubernetes knows.
func inOwnWords(res *http.Response, body []byte) (*http.Response, error) {
	said := metav1.Status{}
	if json.Unmarshal(body, &said) != nil || said.Kind != "Status" {
		said = metav1.Status{}
	}
	b, err := json.Marshal(statusOf(res.StatusCode, res.Request.Method+" "+res.Request.URL.Path, said))
	if err != nil {
		return nil, err
	}
	// The header Retry-After is left out: client-go would wait for as long as the cluster wants, and block the
	// worker.
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{
		Status: strconv.Itoa(res.StatusCode) + " " + http.StatusText(res.StatusCode), StatusCode: res.StatusCode,
		Proto: res.Proto, ProtoMajor: res.ProtoMajor, ProtoMinor: res.ProtoMinor,
		Header: header, Body: io.NopCloser(bytes.NewReader(b)), ContentLength: int64(len(b)), Request: res.Request,
	}, nil
}

// statusOf a failed request.
func statusOf(code int, request string, said metav1.Status) metav1.Status {
	out := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Code:     int32(code),
		Reason:   reasonOf(code),
		Details:  &metav1.StatusDetails{},
	}
	if slices.Contains(knownReasons, said.Reason) {
		out.Reason = said.Reason
	}
	if said.Details != nil {
		for _, c := range said.Details.Causes {
			if slices.Contains(knownCauses, c.Type) {
				out.Details.Causes = append(out.Details.Causes, metav1.StatusCause{Type: c.Type, Message: printable(c.Message)})
			}
		}
	}
	out.Message = fmt.Sprintf("HTTP %d (%s) to %s", code, cmp.Or(string(out.Reason), "unknown"), request)
	if by := admissionIn(said.Message); by != "" {
		out.Message += ": " + by
		out.Details.Causes = append(out.Details.Causes, metav1.StatusCause{Type: CauseAdmission, Message: by})
	}
	return out
}

// CauseAdmission is the cause of an answer if an admission webhook or policy refuses the request, or a webhook cannot
// be called. Only this package sets it.
const CauseAdmission metav1.CauseType = "drover.dev/Admission"

// admissionWords are the sentences in which an API server names what refuses a request, and how they are reported. Only the
// name is taken over, and only one that an object of Kubernetes may have.
var admissionWords = []struct {
	said   *regexp.Regexp
	report string
}{
	{regexp.MustCompile(`failed calling webhook "([a-z0-9.-]{1,253})"`), "the admission webhook %q cannot be called"},
	{regexp.MustCompile(`admission webhook "([a-z0-9.-]{1,253})" denied the request`), "the admission webhook %q refuses it"},
	{regexp.MustCompile(`ValidatingAdmissionPolicy '([a-z0-9.-]{1,253})' with binding`), "the ValidatingAdmissionPolicy %q refuses it"},
}

// admissionIn returns which webhook or policy refuses a request, empty if the text names none.
func admissionIn(text string) string {
	for _, w := range admissionWords {
		if m := w.said.FindStringSubmatch(text); m != nil {
			return fmt.Sprintf(w.report, m[1])
		}
	}
	return ""
}

// rephrase replaces the text of an error that a watch received within its stream, since the cluster wrote it.
func rephrase(err error) error {
	var status kerrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	said := status.Status()
	return &kerrors.StatusError{ErrStatus: statusOf(int(said.Code), "GET /api/v1/nodes", metav1.Status{Reason: said.Reason})}
}

// reasonOf returns the reason of a status code, for a response without one.
func reasonOf(code int) metav1.StatusReason {
	switch code {
	case http.StatusUnauthorized:
		return metav1.StatusReasonUnauthorized
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusNotFound:
		return metav1.StatusReasonNotFound
	case http.StatusMethodNotAllowed:
		return metav1.StatusReasonMethodNotAllowed
	case http.StatusConflict:
		return metav1.StatusReasonConflict
	case http.StatusGone:
		return metav1.StatusReasonGone
	case http.StatusUnprocessableEntity:
		return metav1.StatusReasonInvalid
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	case http.StatusServiceUnavailable:
		return metav1.StatusReasonServiceUnavailable
	case http.StatusGatewayTimeout:
		return metav1.StatusReasonTimeout
	}
	if code >= http.StatusInternalServerError {
		return metav1.StatusReasonInternalError
	}
	return metav1.StatusReasonUnknown
}

// printable returns the beginning of a text, without characters that could forge a line of a log.
func printable(text string) string {
	out := []rune{}
	for _, r := range text {
		if len(out) == maxCauseText {
			break
		}
		if !strconv.IsPrint(r) {
			r = ' '
		}
		out = append(out, r)
	}
	return string(out)
}
