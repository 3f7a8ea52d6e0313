package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// maxMinorsOlder is the number of minor versions by which a kubelet may be older than the API
// server.
const maxMinorsOlder = 3

// VersionSkew returns a problem if the API server does not support the kubelet: the kubelet is
// newer, or more than three minor versions older. As in the policy of Kubernetes, only major and
// minor versions count. It returns nil if a version cannot be parsed, because the skew is unknown
// then.
func VersionSkew(kubelet, apiServer string) *Problem {
	k, kerr := version.ParseGeneric(kubelet)
	a, aerr := version.ParseGeneric(apiServer)
	if kerr != nil || aerr != nil {
		return nil
	}
	relation := ""
	switch {
	case k.Major() > a.Major(), k.Major() == a.Major() && k.Minor() > a.Minor():
		relation = "newer than"
	case k.Major() < a.Major(), k.Minor()+maxMinorsOlder < a.Minor():
		relation = fmt.Sprintf("more than %d minor versions older than", maxMinorsOlder)
	default:
		return nil
	}
	oldest := max(a.Minor(), maxMinorsOlder) - maxMinorsOlder
	return &Problem{
		Reason: machinev1alpha1.ReasonVersionSkew,
		Message: fmt.Sprintf("spec.version: invalid value %q: the kubelet is %s the API server of the target cluster, which has version %s; allowed are v%d.%d to v%d.%d",
			kubelet, relation, apiServer, a.Major(), oldest, a.Major(), a.Minor()),
	}
}
