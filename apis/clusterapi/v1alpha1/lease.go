package v1alpha1

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// LeaseOfClusterAPI is the name of the Lease of the leader of Cluster API's own controllers.
const LeaseOfClusterAPI = "controller-leader-election-capi"

// IsHeld reports whether a leader holds a Lease at a time.
func IsHeld(l coordinationv1.LeaseSpec, now time.Time) bool {
	if l.HolderIdentity == nil || *l.HolderIdentity == "" || l.RenewTime == nil || l.LeaseDurationSeconds == nil {
		return false
	}
	return now.Before(l.RenewTime.Add(time.Duration(*l.LeaseDurationSeconds) * time.Second))
}
