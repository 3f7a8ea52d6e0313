package userdata

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletapis "k8s.io/kubelet/pkg/apis"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// kubeletFlags returns the settings of one Node that a KubeletConfiguration cannot have, as an environment file
// of systemd. The syntax of labels is checked strictly, because a blank in one would start another flag.
func kubeletFlags(in Input) (string, field.ErrorList) {
	args := []string{"--hostname-override=" + in.Hostname}
	if in.ExternalCloudProvider {
		// There is no field for it in a KubeletConfiguration.
		args = append(args, "--cloud-provider=external")
	}

	labels, errs := labelFlag(in.Labels, field.NewPath("spec", "metadata", "labels"))
	args = append(args, "--node-labels="+strings.Join(slices.Concat(ofToken, labels), ","))
	if p := in.Settings.ImageCredentialProviders; p != nil {
		// There are no fields for them, either.
		args = append(args, "--image-credential-provider-config="+pathCredentialProviders, "--image-credential-provider-bin-dir="+binDirOf(*p))
	}
	return fmt.Sprintf("KUBELET_EXTRA_ARGS=%q\n", strings.Join(args, " ")), errs
}

// ofToken are labels by which Drover recognizes a Node that joined when its Machine no longer existed.
var ofToken = []string{
	clusterv1alpha1.LabelConfig + "=" + clusterv1alpha1.PlaceholderConfigUID,
	clusterv1alpha1.LabelJoinToken + "=" + clusterv1alpha1.PlaceholderUID,
}

func labelFlag(labels map[string]string, path *field.Path) ([]string, field.ErrorList) {
	var errs field.ErrorList
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		// If two flags set one label, the kubelet uses the last one, and the Node would have the identity of another
		// Machine.
		if k == clusterv1alpha1.LabelConfig || k == clusterv1alpha1.LabelJoinToken {
			errs = append(errs, field.Forbidden(path.Key(k), "only Drover sets this label, by which it knows the Node of a Machine"))
			continue
		}
		for _, msg := range validation.IsQualifiedName(k) {
			errs = append(errs, field.Invalid(path, k, msg))
		}
		for _, msg := range validation.IsValidLabelValue(labels[k]) {
			errs = append(errs, field.Invalid(path.Key(k), labels[k], msg))
		}
		if MaySet(k) {
			pairs = append(pairs, k+"="+labels[k])
		}
	}
	return pairs, errs
}

// MaySet reports whether a kubelet may put a label on its own Node: it does not start with one that the
// NodeRestriction admission plugin would refuse.
func MaySet(label string) bool {
	domain, _, _ := strings.Cut(label, "/")
	for _, reserved := range []string{"kubernetes.io", "k8s.io"} {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			return kubeletapis.IsKubeletLabel(label)
		}
	}
	return true
}
