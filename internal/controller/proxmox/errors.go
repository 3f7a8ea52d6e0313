package proxmox

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/ratelimit"
)

// A rule assigns a class to the errors whose text matches.
type rule struct {
	text  *regexp.Regexp
	class fn.ErrorCode
}

// rules are applied in this order, to the text of the status line or the exit status of a task.
var rules = []rule{
	{regexp.MustCompile(`(?i)quota exceeded`), fn.ErrorQuotaExceeded},
	{regexp.MustCompile(`(?i)no space left|out of space|insufficient free space|not enough (free )?(space|memory)|cannot allocate memory|free space in (thin )?pool`), fn.ErrorCapacityExhausted},
	{regexp.MustCompile(`(?i)permission check failed|permission denied - invalid`), fn.ErrorPermissionDenied},
	{regexp.MustCompile(`(?i)got timeout|is locked \(|no quorum|not quorate|already exists|already running|is running - destroy failed|interrupted by signal`), fn.ErrorTransient},
	{regexp.MustCompile(`(?i)does not exist|not available on node|no such cluster node|hostname lookup|not supported|does not support|can't clone VM to node|unable to parse|bridge '[^']*' does not|is offline`), fn.ErrorInvalidRequest},
}

// classify returns an error with a class and a description of the failed action. An error that already has a
// class is returned as it is.
func classify(what string, err error) error {
	var known *native.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := asAPIError(err)
	if e == nil {
		if ratelimit.Unsent(err) {
			return &native.Error{Class: fn.ErrorThrottled, What: what, Err: err, Refused: true}
		}
		return &native.Error{Class: fn.ErrorTransient, What: what, Err: err}
	}
	out := &native.Error{What: what, Err: e}
	switch e.Status {
	case http.StatusUnauthorized:
		out.Class, out.Credentials = fn.ErrorPermissionDenied, true
	case http.StatusForbidden:
		out.Class = fn.ErrorPermissionDenied
	case http.StatusBadRequest:
		out.Class = fn.ErrorInvalidRequest
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		out.Class = fn.ErrorThrottled
	case 595: // The server did not connect to the node, so the call had no effect.
		out.Class, out.Refused = fn.ErrorTransient, true
	case http.StatusInternalServerError:
		out.Class, out.Refused = classOfText(e.Text)
	default:
		out.Class = fn.ErrorTransient
	}
	return out
}

// classOfText returns the class of the text of an error of the server or of a task. The second value is true
// if a rule matches: the server returns such an error before it changes anything.
func classOfText(text string) (fn.ErrorCode, bool) {
	for _, r := range rules {
		if r.text.MatchString(text) {
			return r.class, true
		}
	}
	return fn.ErrorTransient, false
}

// taskError returns the error of a task that ended with the text.
func taskError(kind, text string) error {
	class, _ := classOfText(text)
	return &native.Error{Class: class, What: "the task " + kind + " failed", Err: errors.New(text), Refused: true}
}

// isNoConfiguration reports whether err means that the node has no VM with the VMID.
func isNoConfiguration(err error) bool {
	e := asAPIError(err)
	return e != nil && e.Status == http.StatusInternalServerError &&
		(strings.Contains(e.Text, "onfiguration file") && strings.Contains(e.Text, "does not exist") || strings.Contains(e.Text, "unable to find configuration file"))
}

// isForbidden reports whether the token lacks a privilege.
func isForbidden(err error) bool {
	e := asAPIError(err)
	return e != nil && e.Status == http.StatusForbidden
}

func pairs(m map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s: %s", k, strings.TrimSpace(m[k])))
	}
	return strings.Join(out, "; ")
}
