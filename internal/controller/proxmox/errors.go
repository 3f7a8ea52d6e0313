package proxmox

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// rules are applied in this order, to the text of the status line or the exit status of a task.
var rules = native.Rules{
	{Text: regexp.MustCompile(`(?i)quota exceeded`), Class: fn.ErrorQuotaExceeded},
	{Text: regexp.MustCompile(`(?i)no space left|out of space|insufficient free space|not enough (free )?(space|memory)|cannot allocate memory|free space in (thin )?pool`), Class: fn.ErrorCapacityExhausted},
	{Text: regexp.MustCompile(`(?i)permission check failed|permission denied - invalid`), Class: fn.ErrorPermissionDenied},
	{Text: regexp.MustCompile(`(?i)got timeout|is locked \(|no quorum|not quorate|already exists|already running|VM [0-9]+ not running|is running - destroy failed|interrupted by signal`), Class: fn.ErrorTransient},
	{Text: regexp.MustCompile(`(?i)does not exist|not available on node|no such cluster node|hostname lookup|not supported|does not support|can't clone VM to node|unable to parse|bridge '[^']*' does not|is offline|is paused`), Class: fn.ErrorInvalidRequest},
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
		// The server returns an error that a rule matches before it changes anything.
		out.Class, out.Refused = rules.ClassOf(e.Text)
	default:
		out.Class = fn.ErrorTransient
	}
	return out
}

// taskError returns the error of a task that ended with the text.
func taskError(kind, text string) error {
	class, _ := rules.ClassOf(text)
	return native.TaskError(class, kind, text)
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
