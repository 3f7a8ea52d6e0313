package nodekeys

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/workernode"
)

type (
	// obj is JSON.
	obj = map[string]any
	// applied is a record of the Node of a test.
	applied  = machinev1alpha1.AppliedToNode
	replaced = machinev1alpha1.ReplacedValues
)

// id is the providerID of the VM.
const id = "aws:///zone/i-1"

func TestTheKeysOfANode(t *testing.T) {
	type m = obj
	const uid, disabled, tier = "uid-1", machinev1alpha1.AnnotationScaleDownDisabled, "node-restriction.kubernetes.io/tier"
	token := clusterv1alpha1.LabelJoinToken
	uninitialized := corev1.Taint{Key: machinev1alpha1.TaintUninitialized, Effect: corev1.TaintEffectNoSchedule}
	cordon := corev1.Taint{Key: machinev1alpha1.TaintCordoned, Effect: corev1.TaintEffectPreferNoSchedule}
	others := corev1.Taint{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute}
	ours := corev1.Taint{Key: "team", Value: "blue", Effect: corev1.TaintEffectNoSchedule}
	wantBlue := []workernode.Taint{{Key: "team", Value: "blue", Effect: "NoSchedule"}}
	everything := &applied{
		NodeUID: uid, Labels: []string{"a"}, Annotations: []string{"c"}, Taints: []string{"team:NoSchedule"},
		Replaced: &replaced{Labels: map[string]string{"a": "theirs"}, Annotations: map[string]string{"c": "theirs"}, Taints: map[string]string{"team:NoSchedule": "red"}},
	}
	cases := map[string]struct {
		labels, annotations map[string]string
		taints              []corev1.Taint
		cordoned            bool
		recorded            *applied
		want                workernode.Parameters
		patch               m
		record              *applied
		kept                []string
	}{
		"WhatItJoinedWithStays": {
			labels: map[string]string{token: "t", clusterv1alpha1.LabelConfig: "c", "other": "1"},
			want:   workernode.Parameters{Labels: map[string]string{token: "t"}},
		},
		"WhatItRemovedOfThatIsPutBack": {
			labels: map[string]string{"other": "1"},
			want:   workernode.Parameters{Labels: map[string]string{token: "t"}},
			patch:  m{"metadata": m{"labels": m{token: "t"}}},
		},
		"NothingWantedIsNothingDone": {labels: map[string]string{"a": "b"}, taints: []corev1.Taint{others}},
		"WhatIsWantedIsPutThereAndRecorded": {
			labels: map[string]string{"other": "1"},
			want:   workernode.Parameters{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
			patch:  m{"metadata": m{"labels": m{"a": "b"}, "annotations": m{"c": "d"}}},
			record: &applied{NodeUID: uid, Labels: []string{"a"}, Annotations: []string{"c"}},
		},
		"WhatIsThereIsLeftAlone": {
			labels: map[string]string{"a": "b"}, recorded: &applied{NodeUID: uid, Labels: []string{"a"}},
			want:   workernode.Parameters{Labels: map[string]string{"a": "b"}},
			record: &applied{NodeUID: uid, Labels: []string{"a"}},
		},
		"AnotherValueIsPutRight": {
			labels: map[string]string{"a": "x"}, recorded: &applied{NodeUID: uid, Labels: []string{"a"}},
			want:   workernode.Parameters{Labels: map[string]string{"a": "b"}},
			patch:  m{"metadata": m{"labels": m{"a": "b"}}},
			record: &applied{NodeUID: uid, Labels: []string{"a"}},
		},
		"WhatWeSetAndDoNotWantIsRemoved": {
			labels: map[string]string{"a": "b", "other": "1"}, annotations: map[string]string{"c": "d", "other": "1"},
			recorded: &applied{NodeUID: uid, Labels: []string{"a"}, Annotations: []string{"c"}},
			patch:    m{"metadata": m{"labels": m{"a": nil}, "annotations": m{"c": nil}}},
		},
		"WhatIsRecordedOfAnotherNodeIsNotRemoved": {
			labels: map[string]string{"a": "b"}, recorded: &applied{NodeUID: "uid-0", Labels: []string{"a"}},
		},
		"ButAFreshNodeHasItFromItsUserData": {
			labels: map[string]string{"a": "b"}, taints: []corev1.Taint{uninitialized},
			recorded: &applied{NodeUID: "uid-0", Labels: []string{"a"}, Replaced: &replaced{Labels: map[string]string{"a": "of the other Node"}}},
			patch:    m{"metadata": m{"resourceVersion": "7", "labels": m{"a": nil}}, "spec": m{"taints": []any{}}},
		},
		"ATaintOfABootstrapProviderOfClusterAPIIsRemovedToo": {
			taints: []corev1.Taint{others, {Key: machinev1alpha1.TaintUninitializedByClusterAPI, Effect: corev1.TaintEffectNoSchedule}},
			patch:  m{"metadata": m{"resourceVersion": "7"}, "spec": m{"taints": []any{m{"key": others.Key, "effect": "NoExecute"}}}},
		},
		"WhatOthersRemovedIsNotRemovedAgain": {recorded: &applied{NodeUID: uid, Labels: []string{"a"}}},
		"WhatOthersSetToWhatIsWantedIsTheirs": {
			labels: map[string]string{"a": "b"}, annotations: map[string]string{disabled: "true"}, taints: []corev1.Taint{ours},
			want: workernode.Parameters{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{disabled: "true"}, Taints: wantBlue},
		},
		"WhatOthersSetToAnotherValueIsRecorded": {
			labels: map[string]string{"a": "theirs"}, annotations: map[string]string{"c": "theirs"},
			taints: []corev1.Taint{{Key: "team", Value: "red", Effect: corev1.TaintEffectNoSchedule}},
			want:   workernode.Parameters{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Taints: wantBlue},
			patch: m{
				"metadata": m{"resourceVersion": "7", "labels": m{"a": "b"}, "annotations": m{"c": "d"}},
				"spec":     m{"taints": []any{m{"key": "team", "value": "blue", "effect": "NoSchedule"}}},
			},
			record: everything,
		},
		"AndGivenBack": {
			labels: map[string]string{"a": "b"}, annotations: map[string]string{"c": "d"}, taints: []corev1.Taint{ours},
			recorded: everything,
			patch: m{
				"metadata": m{"resourceVersion": "7", "labels": m{"a": "theirs"}, "annotations": m{"c": "theirs"}},
				"spec":     m{"taints": []any{m{"key": "team", "value": "red", "effect": "NoSchedule"}}},
			},
		},
		"AFreshNodeHasOursFromItsKubelet": {
			labels: map[string]string{"a": "b"},
			taints: []corev1.Taint{uninitialized, ours, others},
			want: workernode.Parameters{
				Labels: map[string]string{"a": "b", "node-role.kubernetes.io/worker": ""}, Taints: wantBlue,
			},
			patch: m{
				"metadata": m{"resourceVersion": "7", "labels": m{"node-role.kubernetes.io/worker": ""}},
				"spec":     m{"taints": []any{m{"key": "team", "value": "blue", "effect": "NoSchedule"}, m{"key": others.Key, "effect": "NoExecute"}}},
			},
			record: &applied{NodeUID: uid, Labels: []string{"a", "node-role.kubernetes.io/worker"}, Taints: []string{"team:NoSchedule"}},
		},
		"AfterACrashBehindTheFirstPatchWhatWasPromisedIsOurs": {
			labels: map[string]string{"a": "b"}, recorded: &applied{Labels: []string{"a"}},
			want:   workernode.Parameters{Labels: map[string]string{"a": "b"}},
			record: &applied{NodeUID: uid, Labels: []string{"a"}},
		},
		"ButAnotherValueIsTheirs": {
			labels: map[string]string{"a": "theirs"}, recorded: &applied{Labels: []string{"a"}},
			want:   workernode.Parameters{Labels: map[string]string{"a": "b"}},
			patch:  m{"metadata": m{"labels": m{"a": "b"}}},
			record: &applied{NodeUID: uid, Labels: []string{"a"}, Replaced: &replaced{Labels: map[string]string{"a": "theirs"}}},
		},
		"AStartupTaintIsLeftToTheControllerThatRemovesIt": {
			taints: []corev1.Taint{{Key: "cni", Effect: corev1.TaintEffectNoSchedule}},
			want:   workernode.Parameters{StartupTaints: []workernode.Taint{{Key: "cni", Effect: "NoSchedule"}}},
		},
		"WhatOthersSetStays": {
			labels: map[string]string{"a": "b"}, annotations: map[string]string{"c": "d"}, recorded: &applied{NodeUID: uid, Labels: []string{"z"}},
		},
		"ATaintIsAddedToThoseOfOthers": {
			taints: []corev1.Taint{others},
			want:   workernode.Parameters{Taints: wantBlue},
			patch: m{
				"metadata": m{"resourceVersion": "7"},
				"spec":     m{"taints": []any{m{"key": others.Key, "effect": "NoExecute"}, m{"key": "team", "value": "blue", "effect": "NoSchedule"}}},
			},
			record: &applied{NodeUID: uid, Taints: []string{"team:NoSchedule"}},
		},
		"ATaintOfOursIsRemovedFromBetweenOthers": {
			taints: []corev1.Taint{ours, others}, recorded: &applied{NodeUID: uid, Taints: []string{"team:NoSchedule"}},
			patch: m{
				"metadata": m{"resourceVersion": "7"},
				"spec":     m{"taints": []any{m{"key": others.Key, "effect": "NoExecute"}}},
			},
		},
		"TheSameKeyWithAnotherEffectIsAnotherTaint": {
			taints:   []corev1.Taint{ours, {Key: "team", Effect: corev1.TaintEffectNoExecute}},
			recorded: &applied{NodeUID: uid, Taints: []string{"team:NoSchedule"}},
			want:     workernode.Parameters{Taints: []workernode.Taint{{Key: "team", Value: "red", Effect: "NoSchedule"}}},
			patch: m{
				"metadata": m{"resourceVersion": "7"},
				"spec":     m{"taints": []any{m{"key": "team", "value": "red", "effect": "NoSchedule"}, m{"key": "team", "effect": "NoExecute"}}},
			},
			record: &applied{NodeUID: uid, Taints: []string{"team:NoSchedule"}},
		},
		"WhatOnlyDroverSetsNeedsNoRecord": {
			labels: map[string]string{machinev1alpha1.LabelUpdate: "ready"}, annotations: map[string]string{machinev1alpha1.AnnotationUpdateVersion: "v1"},
			taints: []corev1.Taint{{Key: machinev1alpha1.TaintOutdated, Effect: corev1.TaintEffectPreferNoSchedule}},
			want:   workernode.Parameters{Annotations: map[string]string{machinev1alpha1.AnnotationMachine: "m"}},
			patch: m{
				"metadata": m{
					"resourceVersion": "7", "labels": m{machinev1alpha1.LabelUpdate: nil},
					"annotations": m{machinev1alpha1.AnnotationUpdateVersion: nil, machinev1alpha1.AnnotationMachine: "m"},
				},
				"spec": m{"taints": []any{}},
			},
		},
		"AForgedRecordChangesNoKeyOfKubernetes": {
			labels: map[string]string{tier: "untrusted", "k8s.io/x": "1"}, annotations: map[string]string{"csi.volume.kubernetes.io/nodeid": "{}"}, taints: []corev1.Taint{others},
			recorded: &applied{
				NodeUID: uid, Labels: []string{tier, "k8s.io/x"}, Annotations: []string{"csi.volume.kubernetes.io/nodeid"}, Taints: []string{"node.kubernetes.io/unreachable:NoExecute"},
				Replaced: &replaced{Labels: map[string]string{tier: "pci"}, Taints: map[string]string{"node.kubernetes.io/unreachable:NoExecute": "x"}},
			},
			kept: []string{"k8s.io/x", tier, "csi.volume.kubernetes.io/nodeid", "node.kubernetes.io/unreachable:NoExecute"},
		},
		"ButTheSpecDoes": {
			labels: map[string]string{tier: "untrusted"},
			want:   workernode.Parameters{Labels: map[string]string{tier: "trusted"}},
			patch:  m{"metadata": m{"labels": m{tier: "trusted"}}},
			record: &applied{NodeUID: uid, Labels: []string{tier}},
		},
		"WhatDroverItselfSetForTheAutoscalerIsRemoved": {
			annotations: map[string]string{disabled: "true"}, recorded: &applied{NodeUID: uid, Annotations: []string{disabled}},
			patch: m{"metadata": m{"annotations": m{disabled: nil}}},
		},
		"ButNotWithAnotherValue": {
			annotations: map[string]string{disabled: "by an administrator"}, recorded: &applied{NodeUID: uid, Annotations: []string{disabled}},
			kept: []string{disabled},
		},
		"ANodeToBeDrainedIsCordonedAndMarked": {
			want: workernode.Parameters{Drained: true},
			patch: m{
				"metadata": m{"resourceVersion": "7"},
				"spec":     m{"unschedulable": true, "taints": []any{m{"key": cordon.Key, "effect": "PreferNoSchedule"}}},
			},
		},
		"OneThatWasCordonedBeforeIsLeftSo": {cordoned: true, want: workernode.Parameters{Drained: true}},
		"AndStaysSoAfterwards":             {cordoned: true},
		"NoRecordUncordonsIt":              {cordoned: true, recorded: everything},
		"NorDoesAMarkInTheSpec": {
			cordoned: true, want: workernode.Parameters{Taints: []workernode.Taint{{Key: cordon.Key, Effect: "PreferNoSchedule"}}},
		},
		"OneThatWasUncordonedMeanwhileIsCordonedAgain": {
			taints: []corev1.Taint{cordon}, want: workernode.Parameters{Drained: true},
			patch: m{"metadata": m{"resourceVersion": "7"}, "spec": m{"unschedulable": true}},
		},
		"OurCordonIsTakenBack": {
			cordoned: true, taints: []corev1.Taint{others, cordon},
			patch: m{
				"metadata": m{"resourceVersion": "7"},
				"spec":     m{"unschedulable": false, "taints": []any{m{"key": others.Key, "effect": "NoExecute"}}},
			},
		},
		"ANodeThatIsGivenBackHasNothingOfDrovers": {
			labels:      map[string]string{token: "t", "a": "ours", "other": "1"},
			annotations: map[string]string{"c": "ours", machinev1alpha1.AnnotationMachine: "m"},
			taints:      []corev1.Taint{others, ours, cordon}, cordoned: true, recorded: everything,
			patch: m{
				"metadata": m{"labels": m{token: nil, "a": "theirs"}, "annotations": m{"c": "theirs", machinev1alpha1.AnnotationMachine: nil}, "resourceVersion": "7"},
				"spec":     m{"taints": []any{m{"key": others.Key, "effect": "NoExecute"}, m{"key": "team", "value": "red", "effect": "NoSchedule"}}, "unschedulable": false},
			},
		},
		"TheMarkOfAnUncordonedNodeIsRemoved": {
			taints: []corev1.Taint{cordon},
			patch:  m{"metadata": m{"resourceVersion": "7"}, "spec": m{"taints": []any{}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.ProviderID = id
			node := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n", UID: uid, ResourceVersion: "7", Labels: tc.labels, Annotations: tc.annotations},
				Spec:       corev1.NodeSpec{ProviderID: id, Taints: tc.taints, Unschedulable: tc.cordoned},
			}
			c, err := Of(node, tc.want, tc.recorded)
			if err != nil {
				t.Fatal(err)
			}
			var got m
			if c.Patch != nil {
				if err := json.Unmarshal(c.Patch, &got); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(tc.patch, got); d != "" {
				t.Errorf("patch (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.record, c.Record); d != "" {
				t.Errorf("record (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tc.kept, c.Kept); d != "" {
				t.Errorf("kept (-want +got):\n%s", d)
			}
		})
	}
}

// TestARecordIsBounded: a kubelet writes annotations of any length and number.
func TestARecordIsBounded(t *testing.T) {
	want, have := workernode.Parameters{ProviderID: id, Annotations: map[string]string{}}, map[string]string{}
	for i := range 400 {
		key := fmt.Sprintf("example.org/%03d", i)
		want.Annotations[key], have[key] = "ours", strings.Repeat("x", 255+i%3)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-1", Annotations: have}, Spec: corev1.NodeSpec{ProviderID: id}}
	c, err := Of(n, want, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := c.Record
	if len(r.Annotations) != machinev1alpha1.MaxAppliedKeys || len(r.Replaced.Annotations) != machinev1alpha1.MaxReplacedValues {
		t.Errorf("%d keys, %d values", len(r.Annotations), len(r.Replaced.Annotations))
	}
	for k, v := range r.Replaced.Annotations {
		if len(v) > machinev1alpha1.MaxReplacedLength {
			t.Errorf("value of %s has %d bytes", k, len(v))
		}
	}
	full := &applied{NodeUID: r.NodeUID}
	for i := range machinev1alpha1.MaxAppliedKeys {
		full.Annotations = append(full.Annotations, fmt.Sprintf("another.org/%03d", i))
	}
	union := Union(full, r)
	if len(union.Annotations) != machinev1alpha1.MaxAppliedKeys || !IsCovered(union, r) || !slices.IsSorted(union.Annotations) {
		t.Errorf("union %+v", union)
	}
}

func TestANodeIsPatchedOnlyWhenItIsRecorded(t *testing.T) {
	ofA := &applied{NodeUID: "uid-1", Labels: []string{"a"}}
	with := func(b string) *applied {
		return &applied{NodeUID: "uid-1", Labels: []string{"a"}, Replaced: &replaced{Labels: map[string]string{"a": b}}}
	}
	for name, tc := range map[string]struct {
		status, record *applied
		want           bool
	}{
		"NothingToRecord":        {nil, nil, true},
		"NothingRecorded":        {nil, ofA, false},
		"Recorded":               {ofA, ofA, true},
		"RecordedWithMore":       {&applied{NodeUID: "uid-1", Labels: []string{"a", "b"}}, ofA, true},
		"OfAnotherNode":          {&applied{NodeUID: "uid-0", Labels: []string{"a"}}, ofA, false},
		"Promised":               {&applied{Labels: []string{"a"}}, ofA, true},
		"PromisedWithoutValues":  {&applied{Labels: []string{"a"}}, with("b"), false},
		"RecordedWithoutValues":  {ofA, with("b"), false},
		"RecordedAnotherValue":   {with("c"), with("b"), false},
		"RecordedWithValues":     {with("b"), with("b"), true},
		"RecordedAsAnotherThing": {&applied{NodeUID: "uid-1", Annotations: []string{"a"}}, ofA, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsCovered(tc.status, tc.record); got != tc.want {
				t.Errorf("covered %v, want %v", got, tc.want)
			}
			if tc.record != nil && !IsCovered(Union(tc.status, tc.record), tc.record) {
				t.Errorf("what is written before the patch is %+v", Union(tc.status, tc.record))
			}
		})
	}
}
