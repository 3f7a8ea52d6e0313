package v1alpha1

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Devices are extended resources of a Node, such as nvidia.com/gpu, and how many there are.
// +kubebuilder:object:generate=false
type Devices map[string]int64

// maxDevices is more than any Node has. A kubelet that lists more loses the last ones.
const maxDevices = 64

// DevicesIn returns the extended resources of a list of which there is at least one.
func DevicesIn(l corev1.ResourceList) Devices {
	out := Devices{}
	for name, q := range l {
		if n := wholeOf(q); isDevice(string(name)) && n > 0 {
			out[string(name)] = n
		}
	}
	if len(out) > maxDevices {
		for _, name := range slices.Sorted(maps.Keys(out))[maxDevices:] {
			delete(out, name)
		}
	}
	return out
}

// wholeOf returns a quantity, rounded up. One that is too large for an int64 overflows otherwise.
func wholeOf(q resource.Quantity) int64 {
	if q.CmpInt64(math.MaxInt64) > 0 {
		return math.MaxInt64
	}
	return q.Value()
}

// isDevice reports whether a name is that of an extended resource: it has a domain, and not one of Kubernetes.
func isDevice(name string) bool {
	domain, _, found := strings.Cut(name, "/")
	return found && !strings.HasPrefix(name, "requests.") && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}
