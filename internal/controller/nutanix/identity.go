package nutanix

import "strings"

const (
	// maxDescription is the maximum length of a description.
	maxDescription = 1000
	// scheme is the scheme of a providerID.
	scheme = "nutanix://"
)

// providerID returns the providerID that the cloud-controller-manager of Nutanix writes.
func providerID(uuid string) string { return scheme + strings.ToLower(uuid) }
