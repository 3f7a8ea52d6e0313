package userdata

import (
	"encoding/base64"
	"strings"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// A Filling is what the placeholders of a JoinToken's user data stand for.
type Filling struct {
	Token, Server  string
	CA             []byte
	UID, ConfigUID string
}

// IsComplete says whether all of it is known.
func (f Filling) IsComplete() bool {
	return f.Token != "" && f.Server != "" && len(f.CA) > 0 && f.UID != "" && f.ConfigUID != ""
}

// Fill it in, and encode the whole as the JoinToken asks for.
func (f Filling) Fill(p clusterv1alpha1.JoinTokenParameters) []byte {
	filled := []byte(strings.NewReplacer(
		clusterv1alpha1.PlaceholderToken, f.Token,
		clusterv1alpha1.PlaceholderServer, f.Server,
		clusterv1alpha1.PlaceholderCA, base64.StdEncoding.EncodeToString(f.CA),
		clusterv1alpha1.PlaceholderUID, f.UID,
		clusterv1alpha1.PlaceholderConfigUID, f.ConfigUID,
	).Replace(p.UserData))
	if p.UserDataEncoding == clusterv1alpha1.UserDataBase64 {
		return base64.StdEncoding.AppendEncode(nil, filled)
	}
	return filled
}
