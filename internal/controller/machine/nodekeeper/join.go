package nodekeeper

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/identity"
	"github.com/drover-dev/drover/internal/workernode"
)

// JoinSettles is how long a milestone waits for another change of the status, so that one write has both. A
// kubelet registers its Node sooner after it gets its certificate.
const JoinSettles = 5 * time.Second

// joinOf returns the progress of a VM's join, from the objects in the target cluster besides its Node.
func (x *Keeper) joinOf(wn *Node, found candidates) workernode.Join {
	j := workernode.Join{}
	if len(found.proven) == 0 && found.unproven != nil {
		j.Unproven, j.UnprovenSince = found.describeUnproven(), found.unproven.CreationTimestamp.DeepCopy()
	}
	if x.Requests == nil {
		return j
	}
	for _, csr := range x.Requests(bootstrapapi.BootstrapUserPrefix + identity.TokenID(wn.Machine)) {
		j.CertificateRequested = earliest(j.CertificateRequested, csr.CreationTimestamp)
		for _, c := range csr.Status.Conditions {
			if c.Type != certificatesv1.CertificateApproved || c.Status == corev1.ConditionFalse {
				continue
			}
			at := c.LastUpdateTime
			if at.IsZero() {
				at = csr.CreationTimestamp
			}
			j.CertificateApproved = earliest(j.CertificateApproved, at)
		}
	}
	return j
}

func earliest(a *metav1.Time, b metav1.Time) *metav1.Time {
	if a != nil && !b.Before(a) {
		return a
	}
	return &b
}

// SettleJoin defers milestones that are the only change of a status to a later write. It returns how long they
// may wait.
func SettleJoin(now time.Time, before machinev1alpha1.MachineStatus, status *machinev1alpha1.MachineStatus) time.Duration {
	reached := status.Join
	status.Join = before.Join
	isAlone := equality.Semantic.DeepEqual(before, *status)
	status.Join = reached
	if !isAlone || reached == nil {
		return 0
	}
	wait := time.Duration(0)
	for _, m := range reached.Milestones {
		// A milestone in the future, by a clock that is ahead, must not be deferred.
		if age := now.Sub(m.Time.Time); before.Join.At(m.Name) == nil && age >= 0 && age < JoinSettles {
			wait = max(wait, JoinSettles-age)
		}
	}
	if wait > 0 {
		status.Join = before.Join
	}
	return wait
}
