package nutanix

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const (
	// noteVM is the name of the line with the external name in the description of a VM.
	noteVM = "drover-vm"
	// maxDescription is the maximum length of a description.
	maxDescription = 1000
	// scheme is the scheme of a providerID.
	scheme = "nutanix://"
)

// providerID returns the providerID that the cloud-controller-manager of Nutanix writes.
func providerID(uuid string) string { return scheme + strings.ToLower(uuid) }

// descriptionOf returns the description of a VM: one line for each attribute.
func descriptionOf(externalName string, attributes map[string]string) string {
	lines := []string{noteVM + ": " + externalName}
	for _, k := range slices.Sorted(maps.Keys(attributes)) {
		lines = append(lines, fmt.Sprintf("%s: %s", k, attributes[k]))
	}
	return strings.Join(lines, "\n")
}

var note = regexp.MustCompile(`(?m)^([A-Za-z0-9._/-]+): (.*)$`)

// readDescription returns the external name and the attributes in a description. The external name is "" if Drover
// did not write the description.
func readDescription(description string) (externalName string, attributes map[string]string) {
	attributes = map[string]string{}
	for _, m := range note.FindAllStringSubmatch(strings.ReplaceAll(description, "\r\n", "\n"), -1) {
		attributes[m[1]] = m[2]
	}
	externalName = attributes[noteVM]
	delete(attributes, noteVM)
	return externalName, attributes
}
