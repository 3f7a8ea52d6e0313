package localcloud

import (
	"errors"
	"fmt"
	"net"

	api "github.com/drover-dev/drover/internal/localcloud"
)

// CodeCreationUnknown is the code of a creation with an unknown result: the request may have reached the cloud,
// and no response came back.
const CodeCreationUnknown = "CreationResultUnknown"

// errorText returns the text of a diagnostic: "Code: message" for an error of the cloud, so that its readers
// can distinguish the codes.
func errorText(err error) string {
	var e *api.Error
	if errors.As(err, &e) && e.Code != "" {
		return codeText(e.Code, e.Message)
	}
	return err.Error()
}

func codeText(code, message string) string { return fmt.Sprintf("%s: %s", code, message) }

// createErrorText is errorText for a creation.
func createErrorText(err error) string {
	if creationUnknown(err) {
		return codeText(CodeCreationUnknown, err.Error())
	}
	return errorText(err)
}

// creationUnknown reports whether a creation that ended with err may have created a VM.
func creationUnknown(err error) bool {
	var e *api.Error
	if errors.As(err, &e) {
		// Without a code, a server in between returned the error.
		return e.Code == "" && e.StatusCode >= 500
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return false
	}
	return true
}
