package userdata

import (
	"encoding/base64"
	"strings"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// A Filling is the values of the placeholders of a user data template. UID is that of
// the Machine, ConfigUID that of the configuration of its cluster.
type Filling struct {
	Token, Server  string
	CA             []byte
	UID, ConfigUID string
}

// Fill returns the template with the values in place of its placeholders, encoded as a
// whole.
func (f Filling) Fill(template string, encoding clusterv1alpha1.UserDataEncoding) []byte {
	filled := []byte(strings.NewReplacer(
		clusterv1alpha1.PlaceholderToken, f.Token,
		clusterv1alpha1.PlaceholderServer, f.Server,
		clusterv1alpha1.PlaceholderCA, base64.StdEncoding.EncodeToString(f.CA),
		clusterv1alpha1.PlaceholderUID, f.UID,
		clusterv1alpha1.PlaceholderConfigUID, f.ConfigUID,
	).Replace(template))
	if encoding == clusterv1alpha1.UserDataBase64 {
		return base64.StdEncoding.AppendEncode(nil, filled)
	}
	return filled
}
