package text

import (
	"bytes"
	"encoding/base64"
)

// Decoded returns the content of a value that a user encoded in base64 although a Secret does that itself, as in data made
// from the output of base64 by kubectl create secret --from-file. It is nil if the value is not base64.
func Decoded(value []byte) []byte {
	out, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(value)))
	if err != nil || len(out) == 0 {
		return nil
	}
	return out
}
