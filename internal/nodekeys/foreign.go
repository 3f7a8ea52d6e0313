package nodekeys

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/workernode"
)

// Foreign returns the labels and annotations of a Node that are meant for Drover, without those that Drover set.
func Foreign(node *corev1.Node, want workernode.Parameters, recorded *machinev1alpha1.AppliedToNode) (labels, annotations map[string]string) {
	was := recall(recorded, node, workernode.IsUninitialized(node))
	return others(node.GetLabels(), want.Labels, was.Labels, isOwnLabel), others(node.GetAnnotations(), want.Annotations, was.Annotations, isOwnAnnotation)
}

func others(have, want map[string]string, was []string, isOwn func(string) bool) map[string]string {
	var out map[string]string
	for k, v := range have {
		domain, _, _ := strings.Cut(k, "/")
		if _, ours := want[k]; ours || isOwn(k) || slices.Contains(was, k) || domain != machinev1alpha1.Group && domain != machinev1alpha1.Domain {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[k] = v
	}
	return out
}
