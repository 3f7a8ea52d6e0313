package machine

import (
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/drover-dev/drover/karpenter/apis/v1alpha1"
	"github.com/drover-dev/drover/karpenter/internal/drover"
	"github.com/drover-dev/drover/karpenter/internal/offer"
)

// Reasons of drift.
const (
	VersionDrifted cloudprovider.DriftReason = "VersionDrifted"
	ClassDrifted   cloudprovider.DriftReason = "ClassDrifted"
	ZoneDrifted    cloudprovider.DriftReason = "ZoneDrifted"
)

// Drift returns why a Machine is no longer what its DroverNodeClass describes, "" if it is. While the DroverNodeClass is not
// Ready, nothing drifts: a class that was deleted by mistake must not replace a fleet.
func Drift(m *drover.Machine, class v1alpha1.DroverNodeClassSpec, o offer.Offer) cloudprovider.DriftReason {
	if !o.IsReady() {
		return ""
	}
	if m.Spec.Version != class.Version {
		return VersionDrifted
	}
	if _, ok := o.Find(KeyOf(m), ZoneOf(m)); ok {
		return ""
	}
	for _, of := range o.Offerings {
		if of.Class == m.Spec.ClassRef {
			return ZoneDrifted
		}
	}
	return ClassDrifted
}
