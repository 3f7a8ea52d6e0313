package userdata

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"
)

// A laterConfiguration is a KubeletConfiguration with the fields that it got after the release of
// k8s.io/kubelet that Drover is built with. A field that both have is decoded into this one.
type laterConfiguration struct {
	kubeletv1.KubeletConfiguration `json:",inline"`

	TLSCurvePreferences     []int32           `json:"tlsCurvePreferences,omitempty"`
	MemoryReservationPolicy string            `json:"memoryReservationPolicy,omitempty"`
	DefaultPodSysctls       map[string]string `json:"defaultPodSysctls,omitempty"`
}

// firstMinors are the minor versions of Kubernetes whose kubelets were the first to have a field of a
// KubeletConfiguration. An older kubelet would ignore it.
var firstMinors = map[string]uint{
	"tlsCurvePreferences":     36,
	"memoryReservationPolicy": 36,
	"defaultPodSysctls":       37,
}

// checkVersion finds what the kubelet of a version ignores, or does not start with, in the configuration
// of a class.
func checkVersion(kubelet string, configuration map[string]any, gates map[string]bool, path *field.Path) field.ErrorList {
	v, err := version.ParseSemantic(kubelet)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "version"), kubelet, "must be a version like v1.35.4")}
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(configuration)) {
		if first := firstMinors[name]; v.Minor() < first {
			errs = append(errs, field.Forbidden(path.Child(name), fmt.Sprintf("kubelets have this field from v1.%d on, and spec.version is %s", first, kubelet)))
		}
	}
	return append(errs, checkFeatureGates(gates, v.Minor(), path.Child("featureGates"))...)
}
