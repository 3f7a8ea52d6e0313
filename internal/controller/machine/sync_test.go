package machine

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/workernode"
)

func TestSyncPatch(t *testing.T) {
	const key = v1alpha1.AnnotationApplied
	type m = map[string]any
	others := corev1.Taint{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute}
	ours := corev1.Taint{Key: "team", Value: "blue", Effect: corev1.TaintEffectNoSchedule}
	cases := map[string]struct {
		labels, annotations map[string]string
		taints              []corev1.Taint
		cordoned            bool
		want                workernode.Parameters
		patch               m
	}{
		"WhatItJoinedWithStays": {
			labels: map[string]string{v1alpha1.LabelJoinToken: "t", v1alpha1.LabelConfig: "c", "other": "1"},
			want:   workernode.Parameters{Labels: map[string]string{v1alpha1.LabelJoinToken: "t"}},
		},
		"WhatItRemovedOfThatIsPutBack": {
			labels: map[string]string{"other": "1"},
			want:   workernode.Parameters{Labels: map[string]string{v1alpha1.LabelJoinToken: "t"}},
			patch:  m{"metadata": m{"labels": m{v1alpha1.LabelJoinToken: "t"}, "annotations": m{key: `{"labels":["cluster.drover.dev/join-token"]}`}}},
		},
		"NothingWantedIsNothingDone": {labels: map[string]string{"a": "b"}, taints: []corev1.Taint{others}},
		"WhatIsWantedIsPutThereAndRemembered": {
			labels: map[string]string{"other": "1"},
			want:   workernode.Parameters{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
			patch:  m{"metadata": m{"labels": m{"a": "b"}, "annotations": m{"c": "d", key: `{"labels":["a"],"annotations":["c"]}`}}},
		},
		"WhatIsThereIsLeftAlone": {
			labels: map[string]string{"a": "b"}, annotations: map[string]string{key: `{"labels":["a"]}`},
			want: workernode.Parameters{Labels: map[string]string{"a": "b"}},
		},
		"AnotherValueIsPutRight": {
			labels: map[string]string{"a": "x"}, annotations: map[string]string{key: `{"labels":["a"]}`},
			want:  workernode.Parameters{Labels: map[string]string{"a": "b"}},
			patch: m{"metadata": m{"labels": m{"a": "b"}}},
		},
		"WhatWeSetAndDoNotWantIsRemoved": {
			labels:      map[string]string{"a": "b", "other": "1"},
			annotations: map[string]string{"c": "d", "other": "1", key: `{"labels":["a"],"annotations":["c"]}`},
			patch:       m{"metadata": m{"labels": m{"a": nil}, "annotations": m{"c": nil, key: nil}}},
		},
		"WhatOthersRemovedIsNotRemovedAgain": {
			annotations: map[string]string{key: `{"labels":["a"]}`},
			patch:       m{"metadata": m{"annotations": m{key: nil}}},
		},
		"WhatOthersSetToWhatIsWantedIsTheirs": {
			labels: map[string]string{"a": "b"}, annotations: map[string]string{"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"},
			taints: []corev1.Taint{ours},
			want: workernode.Parameters{
				Labels:      map[string]string{"a": "b"},
				Annotations: map[string]string{"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"},
				Taints:      []workernode.Taint{{Key: "team", Value: "blue", Effect: "NoSchedule"}},
			},
		},
		"WhatOthersSetToAnotherValueIsRemembered": {
			labels: map[string]string{"a": "theirs"}, annotations: map[string]string{"c": "theirs"},
			taints: []corev1.Taint{{Key: "team", Value: "red", Effect: corev1.TaintEffectNoSchedule}},
			want: workernode.Parameters{
				Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
				Taints: []workernode.Taint{{Key: "team", Value: "blue", Effect: "NoSchedule"}},
			},
			patch: m{
				"metadata": m{
					"resourceVersion": "7", "labels": m{"a": "b"},
					"annotations": m{"c": "d", key: `{"labels":["a"],"annotations":["c"],"taints":["team:NoSchedule"],"before":{"labels":{"a":"theirs"},"annotations":{"c":"theirs"},"taints":{"team:NoSchedule":"red"}}}`},
				},
				"spec": m{"taints": []any{m{"key": "team", "value": "blue", "effect": "NoSchedule"}}},
			},
		},
		"AndGivenBack": {
			labels:      map[string]string{"a": "b"},
			annotations: map[string]string{"c": "d", key: `{"labels":["a"],"annotations":["c"],"taints":["team:NoSchedule"],"before":{"labels":{"a":"theirs"},"annotations":{"c":"theirs"},"taints":{"team:NoSchedule":"red"}}}`},
			taints:      []corev1.Taint{ours},
			patch: m{
				"metadata": m{"resourceVersion": "7", "labels": m{"a": "theirs"}, "annotations": m{"c": "theirs", key: nil}},
				"spec":     m{"taints": []any{m{"key": "team", "value": "red", "effect": "NoSchedule"}}},
			},
		},
		"AFreshNodeHasOursFromItsKubelet": {
			labels: map[string]string{"a": "b"},
			taints: []corev1.Taint{{Key: "machine.drover.dev/uninitialized", Effect: corev1.TaintEffectNoSchedule}, ours, others},
			want: workernode.Parameters{
				Labels: map[string]string{"a": "b", "node-role.kubernetes.io/worker": ""},
				Taints: []workernode.Taint{{Key: "team", Value: "blue", Effect: "NoSchedule"}},
			},
			patch: m{
				"metadata": m{
					"resourceVersion": "7", "labels": m{"node-role.kubernetes.io/worker": ""},
					"annotations": m{key: `{"labels":["a","node-role.kubernetes.io/worker"],"taints":["team:NoSchedule"]}`},
				},
				"spec": m{"taints": []any{m{"key": "team", "value": "blue", "effect": "NoSchedule"}, m{"key": others.Key, "effect": "NoExecute"}}},
			},
		},
		"AStartupTaintIsLeftToWhoTakesItOff": {
			taints: []corev1.Taint{{Key: "cni", Effect: corev1.TaintEffectNoSchedule}},
			want:   workernode.Parameters{StartupTaints: []workernode.Taint{{Key: "cni", Effect: "NoSchedule"}}},
		},
		"WhatOthersSetStays": {
			labels: map[string]string{"a": "b"}, annotations: map[string]string{key: `{"labels":["z"]}`, "c": "d"},
			patch: m{"metadata": m{"annotations": m{key: nil}}},
		},
		"AnUnreadableMemoryRemovesNothing": {
			labels: map[string]string{"a": "b"}, annotations: map[string]string{key: `{`},
		},
		"ATaintIsAddedToThoseOfOthers": {
			taints: []corev1.Taint{others},
			want:   workernode.Parameters{Taints: []workernode.Taint{{Key: "team", Value: "blue", Effect: "NoSchedule"}}},
			patch: m{
				"metadata": m{"resourceVersion": "7", "annotations": m{key: `{"taints":["team:NoSchedule"]}`}},
				"spec":     m{"taints": []any{m{"key": others.Key, "effect": "NoExecute"}, m{"key": "team", "value": "blue", "effect": "NoSchedule"}}},
			},
		},
		"ATaintOfOursIsRemovedFromBetweenOthers": {
			taints:      []corev1.Taint{ours, others},
			annotations: map[string]string{key: `{"taints":["team:NoSchedule"]}`},
			patch: m{
				"metadata": m{"resourceVersion": "7", "annotations": m{key: nil}},
				"spec":     m{"taints": []any{m{"key": others.Key, "effect": "NoExecute"}}},
			},
		},
		"ANodeToBeDrainedIsCordonedAndThatRemembered": {
			want: workernode.Parameters{Drained: true},
			patch: m{
				"metadata": m{"resourceVersion": "7", "annotations": m{key: `{"cordoned":true}`}},
				"spec":     m{"unschedulable": true},
			},
		},
		"OneThatSomebodyElseCordonedIsLeftSo": {cordoned: true, want: workernode.Parameters{Drained: true}},
		"AndStaysSoAfterwards":                {cordoned: true},
		"OneThatSomebodyUncordonedIsCordonedAgain": {
			annotations: map[string]string{key: `{"cordoned":true}`},
			want:        workernode.Parameters{Drained: true},
			patch:       m{"metadata": m{"resourceVersion": "7"}, "spec": m{"unschedulable": true}},
		},
		"OurCordonIsTakenBack": {
			cordoned: true, annotations: map[string]string{key: `{"cordoned":true}`},
			patch: m{
				"metadata": m{"resourceVersion": "7", "annotations": m{key: nil}},
				"spec":     m{"unschedulable": false},
			},
		},
		"WhatSomebodyUncordonedMeanwhileIsForgotten": {
			annotations: map[string]string{key: `{"cordoned":true}`},
			patch:       m{"metadata": m{"annotations": m{key: nil}}},
		},
		"TheSameKeyWithAnotherEffectIsAnotherTaint": {
			taints:      []corev1.Taint{ours, {Key: "team", Effect: corev1.TaintEffectNoExecute}},
			annotations: map[string]string{key: `{"taints":["team:NoSchedule"]}`},
			want:        workernode.Parameters{Taints: []workernode.Taint{{Key: "team", Value: "red", Effect: "NoSchedule"}}},
			patch: m{
				"metadata": m{"resourceVersion": "7"},
				"spec":     m{"taints": []any{m{"key": "team", "value": "red", "effect": "NoSchedule"}, m{"key": "team", "effect": "NoExecute"}}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.ProviderID = id
			node := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "7", Labels: tc.labels, Annotations: tc.annotations},
				Spec:       corev1.NodeSpec{ProviderID: id, Taints: tc.taints, Unschedulable: tc.cordoned},
			}
			raw, err := syncPatch(node, tc.want)
			if err != nil {
				t.Fatal(err)
			}
			var got m
			if raw != nil {
				if err := json.Unmarshal(raw, &got); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(tc.patch, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
