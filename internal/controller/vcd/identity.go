package vcd

import (
	"regexp"
	"strings"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// urn is the beginning of the ID of a VM.
	urn = "urn:vcloud:vm:"
	// scheme is the scheme of a providerID.
	scheme = "vmware-cloud-director://"
)

// providerID returns the providerID of the VM with a UUID, as cloud-provider-for-cloud-director and Cluster API
// Provider Cloud Director write it.
func providerID(uuid string) string { return scheme + urn + uuid }

// describe returns the description of a VM. A description has one line: a query returns it as an attribute, in which a
// line break becomes a space.
func describe(externalName string, metadata map[string]string) string {
	out := "Drover VM " + externalName
	if installation := metadata[machinev1alpha1.TagInstallation]; installation != "" {
		out += " of installation " + installation
	}
	return out
}

var description = regexp.MustCompile(`^Drover VM (\S+)(?: of installation (\S+))?$`)

// readDescription returns the external name and the installation in a description. Both are "" if Drover did not write
// the description.
func readDescription(text string) (externalName, installation string) {
	m := description.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return "", ""
	}
	return m[1], m[2]
}
