package userdata

import (
	"crypto/sha256"
	"encoding/hex"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// Hash returns the hash of a template and an encoding. User data that was filled from a template with the same
// hash need not be filled again.
func Hash(template string, encoding clusterv1alpha1.UserDataEncoding) string {
	if encoding == "" {
		encoding = clusterv1alpha1.UserDataPlain
	}
	h := sha256.Sum256([]byte(string(encoding) + "\n" + template))
	return hex.EncodeToString(h[:16])
}
