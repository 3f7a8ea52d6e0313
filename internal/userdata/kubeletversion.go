package userdata

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"
)

// A laterConfiguration is a KubeletConfiguration with the fields of later releases of k8s.io/kubelet than the
// one that Drover is built with. If both types have a field, it is decoded into this one.
type laterConfiguration struct {
	kubeletv1.KubeletConfiguration `json:",inline"`

	TLSCurvePreferences     []int32           `json:"tlsCurvePreferences,omitempty"`
	MemoryReservationPolicy string            `json:"memoryReservationPolicy,omitempty"`
	DefaultPodSysctls       map[string]string `json:"defaultPodSysctls,omitempty"`
}

// firstMinors has the first minor version of Kubernetes with a field of a KubeletConfiguration. An older
// kubelet would ignore the field.
var firstMinors = map[string]uint{
	"tlsCurvePreferences":     36,
	"memoryReservationPolicy": 36,
	"defaultPodSysctls":       37,
}

// checkVersion returns an error for each field of a configuration that a kubelet of the version would ignore,
// and for each feature gate that it would not start with.
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
