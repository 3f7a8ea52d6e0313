package step

import (
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// ReasonInstallationUnknown is the reason of a problem that no packaged Drover has: its
// own definitions are not there.
const ReasonInstallationUnknown = "InstallationUnknown"

const requirementInstallation = "installation"

// RequireInstallation asks for what identifies this installation of Drover.
func (r Response) RequireInstallation() {
	r.RequireByName(requirementInstallation, "apiextensions.crossplane.io/v2", "CompositeResourceDefinition", "", machinev1alpha1.DefinitionOfInstallation)
}

// Installation returns the ID of this installation of Drover: its VMs carry it, and so
// nobody takes them for those of another at the same account. It is false while
// Crossplane has not looked for it yet.
func Installation(req *fnv1.RunFunctionRequest) (string, *Problem, bool) {
	found, ok := Required(req, requirementInstallation)
	if !ok {
		return "", nil, false
	}
	if len(found) == 0 || found[0].GetUID() == "" {
		return "", &Problem{
			Reason:  ReasonInstallationUnknown,
			Message: fmt.Sprintf("there is no CompositeResourceDefinition %q, whose UID tells the VMs of this installation from those of others", machinev1alpha1.DefinitionOfInstallation),
		}, true
	}
	return string(found[0].GetUID()), nil, true
}
