package jointoken

import (
	"context"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// checkVersion returns a ProblemError if the API server does not support the kubelet of a
// Machine.
func (c Cluster) checkVersion(ctx context.Context, m *machinev1alpha1.Machine) error {
	if c.Version == nil {
		return nil
	}
	apiServer, err := c.Version(ctx)
	if err != nil {
		return err
	}
	if p := plan.VersionSkew(m.Spec.Version, apiServer); p != nil {
		return &ProblemError{*p}
	}
	return nil
}
