package nodekeys

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/allow"
	"github.com/drover-dev/drover/internal/workernode"
)

// What Drover puts on a Node is recorded in the status of the Machine before the Node is patched. If the
// process stops between the two writes, the record has more than the Node, never less: no label is forgotten,
// and no key is removed that Drover did not set.
//
// The record of a Machine whose Node has not joined has the keys that the Node will get. So
// the first patch of the Node needs no write of its own before it.

// recalled is the record of a Node.
type recalled struct {
	machinev1alpha1.AppliedToNode
	Replaced machinev1alpha1.ReplacedValues
	// promised means that the keys were recorded before the Node joined.
	promised bool
}

// recall returns the record of a Node. A record of another Node only lists the keys that a fresh Node has from
// the user data.
func recall(recorded *machinev1alpha1.AppliedToNode, node *corev1.Node, fresh bool) recalled {
	switch {
	case recorded == nil:
		return recalled{}
	case recorded.NodeUID == string(node.GetUID()):
		out := recalled{AppliedToNode: *recorded}
		if recorded.Replaced != nil {
			out.Replaced = *recorded.Replaced
		}
		return out
	case recorded.NodeUID == "" || fresh:
		return recalled{AppliedToNode: *recorded, promised: true}
	}
	return recalled{}
}

// recordOf returns the record of a Node that has the settled keys, nil if Drover has nothing on it.
func recordOf(node *corev1.Node, labels, annotations, taints settlement) *machinev1alpha1.AppliedToNode {
	r := &machinev1alpha1.AppliedToNode{
		Labels: boundedKeys(labels.ours), Annotations: boundedKeys(annotations.ours), Taints: boundedKeys(taints.ours),
		Replaced: replacedOf(labels.replaced, annotations.replaced, taints.replaced),
	}
	return completed(r, string(node.GetUID()))
}

// completed adds the UID of the Node to a record. It returns nil if the record is empty.
func completed(r *machinev1alpha1.AppliedToNode, uid string) *machinev1alpha1.AppliedToNode {
	r.NodeUID = ""
	if equality.Semantic.DeepEqual(r, &machinev1alpha1.AppliedToNode{}) {
		return nil
	}
	r.NodeUID = uid
	return r
}

func boundedKeys(keys []string) []string {
	return keys[:min(len(keys), machinev1alpha1.MaxAppliedKeys)]
}

// replacedOf returns the values to restore, without those of protected keys: Drover never restores these.
func replacedOf(labels, annotations, taints map[string]string) *machinev1alpha1.ReplacedValues {
	bounded := func(values map[string]string) map[string]string {
		var out map[string]string
		for _, k := range slices.Sorted(maps.Keys(values)) {
			if len(values[k]) > machinev1alpha1.MaxReplacedLength || len(out) == machinev1alpha1.MaxReplacedValues || isProtected(k, "") {
				continue
			}
			if out == nil {
				out = map[string]string{}
			}
			out[k] = values[k]
		}
		return out
	}
	r := machinev1alpha1.ReplacedValues{Labels: bounded(labels), Annotations: bounded(annotations), Taints: bounded(taints)}
	if equality.Semantic.DeepEqual(r, machinev1alpha1.ReplacedValues{}) {
		return nil
	}
	return &r
}

// Promise is the record of a Machine whose Node has not joined: the keys that the Node will get. The parameters
// are nil until the pipeline has decided on them.
func Promise(m *machinev1alpha1.Machine, p *workernode.Parameters) *machinev1alpha1.AppliedToNode {
	want := workernode.Parameters{Labels: m.Spec.Metadata.Labels, Annotations: m.Spec.Metadata.Annotations}
	for _, t := range m.Spec.Taints {
		want.Taints = append(want.Taints, workernode.Taint(t))
	}
	if p != nil {
		want = *p
	}
	notOwn := func(keys map[string]string, isOwn func(string) bool) []string {
		return boundedKeys(slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), isOwn))
	}
	return completed(&machinev1alpha1.AppliedToNode{
		Labels: notOwn(want.Labels, isOwnLabel), Annotations: notOwn(want.Annotations, isOwnAnnotation), Taints: notOwn(wantedTaints(want.Taints), isOwnTaint),
	}, "")
}

// IsCovered reports whether the record "by" has all that r has: only then a Node may be patched, so that no key is forgotten.
func IsCovered(by, r *machinev1alpha1.AppliedToNode) bool {
	switch {
	case r == nil:
		return true
	case by == nil || by.NodeUID != r.NodeUID && (by.NodeUID != "" || r.Replaced != nil):
		return false
	}
	for _, keys := range [][2][]string{{by.Labels, r.Labels}, {by.Annotations, r.Annotations}, {by.Taints, r.Taints}} {
		if slices.ContainsFunc(keys[1], func(k string) bool { return !slices.Contains(keys[0], k) }) {
			return false
		}
	}
	was, is := valuesOf(by), valuesOf(r)
	return hasAll(was.Labels, is.Labels) && hasAll(was.Annotations, is.Annotations) && hasAll(was.Taints, is.Taints)
}

func valuesOf(r *machinev1alpha1.AppliedToNode) machinev1alpha1.ReplacedValues {
	if r == nil || r.Replaced == nil {
		return machinev1alpha1.ReplacedValues{}
	}
	return *r.Replaced
}

func hasAll(have, values map[string]string) bool {
	for k, v := range values {
		if h, there := have[k]; !there || h != v {
			return false
		}
	}
	return true
}

// Union is the record of a Node that is about to be patched: the keys that it has and those that it will have.
// If the bounds do not suffice for both, the latter are kept.
func Union(was, will *machinev1alpha1.AppliedToNode) *machinev1alpha1.AppliedToNode {
	if was == nil || was.NodeUID != will.NodeUID && was.NodeUID != "" {
		return will
	}
	keys := func(first, then []string) []string {
		all := slices.Clone(first)
		for _, k := range then {
			if len(all) < machinev1alpha1.MaxAppliedKeys && !slices.Contains(all, k) {
				all = append(all, k)
			}
		}
		slices.Sort(all)
		return all
	}
	values := func(first, then map[string]string) map[string]string {
		all := maps.Clone(first)
		for _, k := range slices.Sorted(maps.Keys(then)) {
			if _, there := all[k]; there || len(all) >= machinev1alpha1.MaxReplacedValues {
				continue
			}
			if all == nil {
				all = map[string]string{}
			}
			all[k] = then[k]
		}
		return all
	}
	out := &machinev1alpha1.AppliedToNode{
		NodeUID: will.NodeUID,
		Labels:  keys(will.Labels, was.Labels), Annotations: keys(will.Annotations, was.Annotations), Taints: keys(will.Taints, was.Taints),
	}
	a, b := valuesOf(will), valuesOf(was)
	r := machinev1alpha1.ReplacedValues{Labels: values(a.Labels, b.Labels), Annotations: values(a.Annotations, b.Annotations), Taints: values(a.Taints, b.Taints)}
	if !equality.Semantic.DeepEqual(r, machinev1alpha1.ReplacedValues{}) {
		out.Replaced = &r
	}
	return out
}

// isOwnLabel reports whether only Drover sets a label on Nodes.
func isOwnLabel(key string) bool {
	switch key {
	case clusterv1alpha1.LabelJoinToken, machinev1alpha1.LabelUpdate, machinev1alpha1.LabelUpdateTo:
		return true
	}
	return false
}

// isOwnAnnotation reports whether only Drover sets an annotation on Nodes.
func isOwnAnnotation(key string) bool {
	switch key {
	case machinev1alpha1.AnnotationMachine, machinev1alpha1.AnnotationNamespace, machinev1alpha1.AnnotationCluster,
		machinev1alpha1.AnnotationUpdateVersion, machinev1alpha1.AnnotationUpdateClass:
		return true
	}
	return false
}

// isOwnTaint reports whether only Drover sets a taint, as key:effect, on Nodes.
func isOwnTaint(id string) bool {
	key, _ := splitTaint(id)
	return key == machinev1alpha1.TaintOutdated || key == machinev1alpha1.TaintPreserved
}

// isProtected reports whether a key is in the domain kubernetes.io or k8s.io. Kubernetes reserves these keys
// for administrators, and some of them keep secrets and pods from kubelets. A status can be forged: a record
// must not be enough to remove or change such a key.
func isProtected(key, _ string) bool { return allow.IsReserved(key) }

// isProtectedAnnotation is isProtected without the annotation that Drover itself sets on Nodes. If that is
// removed, the cluster-autoscaler may remove the Node, but a user who may write the status of the Machine may
// delete the Machine as well.
func isProtectedAnnotation(key, value string) bool {
	return isProtected(key, value) && (key != machinev1alpha1.AnnotationScaleDownDisabled || value != "true")
}
