package userdata

import (
	"encoding/base64"
	"slices"
	"strings"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// A Filling is the values of the placeholders of a user data template. UID is that of
// the Machine, ConfigUID that of the configuration of its cluster. Name is that of the Node,
// which only user data that Drover did not write has a placeholder for.
type Filling struct {
	Token, Server  string
	Name           string
	CA             []byte
	UID, ConfigUID string
}

// placeholders that Fill replaces.
var placeholders = []string{
	clusterv1alpha1.PlaceholderToken, clusterv1alpha1.PlaceholderServer, clusterv1alpha1.PlaceholderCA,
	clusterv1alpha1.PlaceholderUID, clusterv1alpha1.PlaceholderConfigUID,
}

// Fill returns the template with the values in place of its placeholders, plain or escaped as in a data URL,
// encoded as a whole. It returns a TooLargeError if the cloud does not accept user data of that size.
func (f Filling) Fill(template string, form Form) ([]byte, error) {
	return form.pack(f.fill(template))
}

func (f Filling) fill(template string) []byte {
	values := []string{
		clusterv1alpha1.PlaceholderToken, f.Token,
		clusterv1alpha1.PlaceholderServer, f.Server,
		clusterv1alpha1.PlaceholderCA, base64.StdEncoding.EncodeToString(f.CA),
		clusterv1alpha1.PlaceholderUID, f.UID,
		clusterv1alpha1.PlaceholderConfigUID, f.ConfigUID,
	}
	for _, v := range slices.Clone(values) {
		values = append(values, escape(v))
	}
	return []byte(strings.NewReplacer(values...).Replace(template))
}
