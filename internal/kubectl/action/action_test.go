package action_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/action"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

func machine(change func(*machinev1alpha1.Machine)) *machinev1alpha1.Machine {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "w"}}
	m.OwnerReferences = []metav1.OwnerReference{{Kind: view.MachineSet, Name: "set", Controller: ptr.To(true)}}
	if change != nil {
		change(m)
	}
	return m
}

func terminating(m *machinev1alpha1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) }

func TestMachinesAreChangedByTheirAnnotations(t *testing.T) {
	drain := func(o action.Drain) func(*machinev1alpha1.Machine) (action.Change, error) {
		return func(m *machinev1alpha1.Machine) (action.Change, error) { return action.DrainMachine(m, o) }
	}
	replace := func(undo bool) func(*machinev1alpha1.Machine) (action.Change, error) {
		return func(m *machinev1alpha1.Machine) (action.Change, error) { return action.Replace(m, "alice", undo) }
	}
	joined := func(m *machinev1alpha1.Machine) { m.Status.NodeRef = &machinev1alpha1.NodeReference{Name: "n"} }
	rebooted := func(id string, state machinev1alpha1.RebootState) func(*machinev1alpha1.Machine) {
		return func(m *machinev1alpha1.Machine) {
			joined(m)
			m.Status.Reboot = &machinev1alpha1.RebootStatus{ID: id, State: state}
		}
	}
	reboot := func(id string, skip, undo bool) func(*machinev1alpha1.Machine) (action.Change, error) {
		return func(m *machinev1alpha1.Machine) (action.Change, error) {
			return action.RebootMachine(m, action.Reboot{ID: id, SkipDrain: skip, Undo: undo})
		}
	}
	preserve := func(whenFailed, undo bool) func(*machinev1alpha1.Machine) (action.Change, error) {
		return func(m *machinev1alpha1.Machine) (action.Change, error) { return action.Preserve(m, whenFailed, undo) }
	}
	cases := map[string]struct {
		reason  string
		machine func(*machinev1alpha1.Machine)
		do      func(*machinev1alpha1.Machine) (action.Change, error)
		patch   string
		deletes bool
		err     string
	}{
		"DrainOfAMachineThatStays":   {reason: "kubectl users expect that drain deletes nothing", do: drain(action.Drain{}), err: "Add --delete"},
		"DrainByForceOfOneThatStays": {reason: "--force alone deletes nothing either", do: drain(action.Drain{Force: true}), err: "Add --delete"},
		"DrainSkippedOfOneThatStays": {reason: "nor does --skip", do: drain(action.Drain{Skip: true}), err: "Add --delete"},
		"DrainAndDelete":             {reason: "--delete deletes", do: drain(action.Drain{Delete: true}), deletes: true},
		"DrainByForce": {reason: "a drain under way is forced", machine: terminating, do: drain(action.Drain{Force: true}),
			patch: `{"metadata":{"annotations":{"drover.dev/force-drain":"true"}}}`},
		"DrainByForceFromTheStart": {reason: "both in one command", do: drain(action.Drain{Force: true, Delete: true}), deletes: true,
			patch: `{"metadata":{"annotations":{"drover.dev/force-drain":"true"}}}`},
		"DrainSkipped": {reason: "no drain at all", machine: terminating, do: drain(action.Drain{Skip: true}),
			patch: `{"metadata":{"annotations":{"drover.dev/skip-drain":"true"}}}`},
		"DrainForceAndSkip":   {reason: "they contradict each other", do: drain(action.Drain{Force: true, Skip: true}), err: "exclude each other"},
		"DrainUnderWay":       {reason: "there is nothing to do", machine: terminating, do: drain(action.Drain{}), err: "kubectl drover why ma/w -n team"},
		"DrainUndone":         {reason: "both annotations are removed", machine: terminating, do: drain(action.Drain{Undo: true}), patch: `{"metadata":{"annotations":{"drover.dev/force-drain":null,"drover.dev/skip-drain":null}}}`},
		"DrainUndoneAndForce": {reason: "they contradict each other", do: drain(action.Drain{Undo: true, Force: true}), err: "--undo removes"},

		"Replace": {reason: "the set replaces it", do: replace(false), patch: `{"metadata":{"annotations":{"machine.drover.dev/replace":"true","machine.drover.dev/replace-requested-by":"alice"}}}`},
		"ReplaceOfKarpenter": {reason: "Karpenter replaces its Machines", machine: func(m *machinev1alpha1.Machine) {
			m.OwnerReferences, m.Labels = nil, map[string]string{view.LabelNodeClaim: "web-1"}
		}, do: replace(false), err: "delete the NodeClaim web-1 in the target cluster"},
		"ReplaceOfALoneMachine":  {reason: "nothing replaces it", machine: func(m *machinev1alpha1.Machine) { m.OwnerReferences = nil }, do: replace(false), err: "has no MachineSet"},
		"ReplaceOfADeletedOne":   {reason: "it goes already", machine: terminating, do: replace(false), err: "is being deleted already"},
		"ReplaceUndone":          {reason: "the annotation is removed", do: replace(true), patch: `{"metadata":{"annotations":{"machine.drover.dev/replace":null,"machine.drover.dev/replace-requested-by":null}}}`},
		"ReplaceOfTheNodeUndone": {reason: "what the Node requested is called off by false", machine: func(m *machinev1alpha1.Machine) { m.Status.NodeRequestedReplacement = true }, do: replace(true), patch: `{"metadata":{"annotations":{"machine.drover.dev/replace":"false","machine.drover.dev/replace-requested-by":null}}}`},
		"Reboot":                 {reason: "its provider reboots it", machine: joined, do: reboot("one", false, false), patch: `{"metadata":{"annotations":{"machine.drover.dev/reboot":"one","machine.drover.dev/reboot-drain":null}}}`},
		"RebootWithoutADrain":    {reason: "the Node is wedged", machine: joined, do: reboot("one", true, false), patch: `{"metadata":{"annotations":{"machine.drover.dev/reboot":"one","machine.drover.dev/reboot-drain":"Never"}}}`},
		"RebootWithoutANode":     {reason: "nothing would prove it", do: reboot("one", false, false), err: "only its Node proves a reboot"},
		"RebootWithAWrongID":     {reason: "the form of IDs is bounded", machine: joined, do: reboot("two words", false, false), err: "--id=two words: must have 1 to 63 letters"},
		"RebootWithAnIDAgain":    {reason: "each ID counts once", machine: rebooted("one", machinev1alpha1.RebootSucceeded), do: reboot("one", false, false), err: "choose another ID"},
		"RebootDuringAReboot":    {reason: "one is enough", machine: rebooted("one", machinev1alpha1.RebootDraining), do: reboot("two", false, false), err: "is being rebooted already, for request one"},
		"RebootOfADeletedOne":    {reason: "it goes already", machine: terminating, do: reboot("one", false, false), err: "is being deleted"},
		"RebootUndone":           {reason: "the VM was not rebooted yet", machine: rebooted("one", machinev1alpha1.RebootDraining), do: reboot("", false, true), patch: `{"metadata":{"annotations":{"machine.drover.dev/reboot":null,"machine.drover.dev/reboot-drain":null}}}`},
		"RebootUndoneTooLate":    {reason: "the provider has the request", machine: rebooted("one", machinev1alpha1.RebootRebooting), do: reboot("", false, true), err: "ends by itself"},

		"Preserve":           {reason: "from now on", do: preserve(false, false), patch: `{"metadata":{"annotations":{"machine.drover.dev/preserve":"now"}}}`},
		"PreserveWhenFailed": {reason: "once it fails", do: preserve(true, false), patch: `{"metadata":{"annotations":{"machine.drover.dev/preserve":"when-failed"}}}`},
		"PreserveUndone":     {reason: "the annotation is removed", do: preserve(false, true), patch: `{"metadata":{"annotations":{"machine.drover.dev/preserve":null}}}`},
		"AutoPreserveUndone": {reason: "the set would write its value again", machine: func(m *machinev1alpha1.Machine) {
			m.Annotations = map[string]string{machinev1alpha1.AnnotationPreserve: machinev1alpha1.PreserveAuto}
		}, do: preserve(false, true), patch: `{"metadata":{"annotations":{"machine.drover.dev/preserve":"false"}}}`},
		"PreserveOfADeletedOne": {reason: "it is too late", machine: terminating, do: preserve(false, false), err: "cannot be preserved any more"},
		"PreserveBothWays":      {reason: "they contradict each other", do: preserve(true, true), err: "exclude each other"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := tc.do(machine(tc.machine))
			check(t, tc.reason, c, err, tc.patch, tc.err)
			if c.Delete != tc.deletes {
				t.Errorf("%s: deletes %t, want %t", tc.reason, c.Delete, tc.deletes)
			}
		})
	}
}

func check(t *testing.T, reason string, c action.Change, err error, patch, wantErr string) {
	t.Helper()
	switch {
	case wantErr == "" && err != nil, wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
		t.Fatalf("%s: error %v, want %q", reason, err, wantErr)
	case string(c.Patch) != patch:
		t.Errorf("%s: patch\n%s\nwant\n%s", reason, c.Patch, patch)
	}
}

// deployment with three revisions, of which the last is the current one.
func deployment(change func(*machinev1alpha1.MachineDeployment)) *machinev1alpha1.MachineDeployment {
	revision := func(n int64, version string, labels map[string]machinev1alpha1.LabelValue) machinev1alpha1.Revision {
		return machinev1alpha1.Revision{Revision: n, Version: version, ClassRef: machinev1alpha1.ClassReference{Kind: "MachineClass", Name: "small"}, Labels: labels, ChangeCause: "to " + version}
	}
	pool := map[string]machinev1alpha1.LabelValue{"pool": "a"}
	d := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "workers"}}
	d.Spec.Template.Spec.ClassRef, d.Spec.Template.Spec.Version = machinev1alpha1.ClassReference{Kind: "MachineClass", Name: "small"}, "v3"
	d.Spec.Template.Metadata.Labels = map[string]machinev1alpha1.LabelValue{"pool": "a", "tier": "web"}
	d.Status.Revision = 3
	d.Status.Revisions = []machinev1alpha1.Revision{revision(1, "v1", pool), revision(2, "v2", pool), revision(3, "v3", d.Spec.Template.Metadata.Labels)}
	if change != nil {
		change(d)
	}
	return d
}

func TestAnUndoMakesTheTemplateThatOfTheRevision(t *testing.T) {
	for _, tc := range []struct {
		to   int64
		want string
	}{{0, "v2"}, {1, "v1"}} {
		d := deployment(nil)
		c, err := action.UndoRollout(d, action.Undo{ToRevision: tc.to})
		if err != nil {
			t.Fatal(err)
		}
		before, _ := json.Marshal(d)
		after, err := jsonpatch.MergePatch(before, c.Patch)
		if err != nil {
			t.Fatal(err)
		}
		got := &machinev1alpha1.MachineDeployment{}
		if err := json.Unmarshal(after, got); err != nil {
			t.Fatal(err)
		}
		if l := got.Spec.Template.Metadata.Labels; got.Spec.Template.Spec.Version != tc.want || len(l) != 1 || l["pool"] != "a" || got.Annotations[machinev1alpha1.AnnotationChangeCause] != "to "+tc.want {
			t.Errorf("to revision %d: template %+v, annotations %v", tc.to, got.Spec.Template, got.Annotations)
		}
	}
}

func TestRolloutsAreRefusedAsKubectlDoes(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	undo := func(o action.Undo) func(*machinev1alpha1.MachineDeployment) (action.Change, error) {
		return func(d *machinev1alpha1.MachineDeployment) (action.Change, error) { return action.UndoRollout(d, o) }
	}
	restart := func(d *machinev1alpha1.MachineDeployment) (action.Change, error) { return action.Restart(d, now) }
	held := func(decide func(*view.View, view.Ref) (action.Change, error)) func(*machinev1alpha1.MachineDeployment) (action.Change, error) {
		return func(d *machinev1alpha1.MachineDeployment) (action.Change, error) {
			return decide(&view.View{Deployments: []machinev1alpha1.MachineDeployment{*d}}, view.Ref{Kind: view.MachineDeployment, Namespace: d.Namespace, Name: d.Name})
		}
	}
	paused := func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = true }
	annotated := func(d *machinev1alpha1.MachineDeployment) {
		d.Annotations = map[string]string{machinev1alpha1.AnnotationPaused: ""}
	}
	ofPool := func(d *machinev1alpha1.MachineDeployment) {
		d.OwnerReferences = []metav1.OwnerReference{{Kind: view.NodePool, Name: "web", Controller: ptr.To(true)}}
	}
	rollback := func(d *machinev1alpha1.MachineDeployment) { d.Spec.RollbackTo = &machinev1alpha1.RollbackTo{} }
	cases := map[string]struct {
		reason string
		change func(*machinev1alpha1.MachineDeployment)
		do     func(*machinev1alpha1.MachineDeployment) (action.Change, error)
		patch  string
		err    string
	}{
		"UndoHeld":            {reason: "spec.rollbackTo holds against a GitOps tool", do: undo(action.Undo{ToRevision: 1, Hold: true}), patch: `{"spec":{"rollbackTo":{"revision":1}}}`},
		"UndoReleased":        {reason: "the template is rolled out again", change: rollback, do: undo(action.Undo{Release: true}), patch: `{"spec":{"rollbackTo":null}}`},
		"NothingToRelease":    {reason: "there is no rollback", do: undo(action.Undo{Release: true}), err: "no spec.rollbackTo"},
		"UndoToTheCurrent":    {reason: "nothing would change", do: undo(action.Undo{ToRevision: 3}), err: "is that of revision 3 already"},
		"UndoToAnUnknown":     {reason: "the revision is not kept", do: undo(action.Undo{ToRevision: 7}), err: "there are 1, 2, 3"},
		"UndoWithoutHistory":  {reason: "nothing was rolled out", change: func(d *machinev1alpha1.MachineDeployment) { d.Status.Revisions = nil }, do: undo(action.Undo{}), err: "no rollout history"},
		"UndoWhilePaused":     {reason: "kubectl refuses it too", change: paused, do: undo(action.Undo{}), err: "rollout resume md/workers first"},
		"UndoOfAPool":         {reason: "the pool would write its spec again", change: ofPool, do: undo(action.Undo{}), err: `composed by the NodePool "web"`},
		"Restart":             {reason: "an annotation of the template rolls", do: restart, patch: `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-01T00:00:00Z"}}}}}`},
		"RestartWhilePaused":  {reason: "kubectl refuses it too", change: annotated, do: restart, err: "is paused"},
		"RestartRolledBack":   {reason: "the template waits", change: rollback, do: restart, err: "--release"},
		"Pause":               {reason: "spec.paused", do: held(action.Pause), patch: `{"spec":{"paused":true}}`},
		"PauseTwice":          {reason: "kubectl refuses it too", change: paused, do: held(action.Pause), err: "already paused"},
		"Resume":              {reason: "spec.paused", change: paused, do: held(action.Resume), patch: `{"spec":{"paused":false}}`},
		"ResumeOfAnnotated":   {reason: "the annotation pauses too", change: annotated, do: held(action.Resume), patch: `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":null}},"spec":{"paused":false}}`},
		"ResumeWithoutAPause": {reason: "kubectl refuses it too", do: held(action.Resume), err: "is not paused"},
		"PauseOfAPool":        {reason: "the pool would write its spec again", change: ofPool, do: held(action.Pause), err: "change the pool"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := tc.do(deployment(tc.change))
			check(t, tc.reason, c, err, tc.patch, tc.err)
		})
	}
}

func TestARestartOfAPoolIsATimeInItsSpec(t *testing.T) {
	p := machinev1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	ref := view.Ref{Kind: view.NodePool, Namespace: "team", Name: "web"}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c, err := action.RestartOf(&view.View{Pools: []machinev1alpha1.NodePool{p}}, ref, now)
	check(t, "a pool has no template", c, err, `{"spec":{"rollout":{"after":"2026-01-01T00:00:00Z"}}}`, "")
	p.Spec.Paused = true
	c, err = action.RestartOf(&view.View{Pools: []machinev1alpha1.NodePool{p}}, ref, now)
	check(t, "nothing would be replaced", c, err, "", "rollout resume np/web")
	c, err = action.RestartOf(&view.View{}, ref, now)
	check(t, "there is none", c, err, "", "not found")
}

func TestAFreezeOfAPoolIsOneOfItsDeployments(t *testing.T) {
	d := deployment(func(d *machinev1alpha1.MachineDeployment) {
		d.OwnerReferences = []metav1.OwnerReference{{Kind: view.NodePool, Name: "web", Controller: ptr.To(true)}}
	})
	// One MachineDeployment for each failure domain, and one of another pool.
	b, other := d.DeepCopy(), d.DeepCopy()
	b.Name, other.Name, other.OwnerReferences[0].Name = "workers-b", "other", "batch"
	s := machinev1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "set"}}
	s.OwnerReferences = []metav1.OwnerReference{{Kind: view.MachineDeployment, Name: "workers", Controller: ptr.To(true)}}
	v := &view.View{
		Pools:       []machinev1alpha1.NodePool{{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}},
		Deployments: []machinev1alpha1.MachineDeployment{*d, *b, *other}, Sets: []machinev1alpha1.MachineSet{s},
	}
	changes, err := action.Freeze(v, view.Ref{Kind: view.NodePool, Namespace: "team", Name: "web"}, false)
	var names []string
	for _, c := range changes {
		names = append(names, c.Name)
		if string(c.Patch) != `{"metadata":{"labels":{"machine.drover.dev/freeze":"true"}}}` {
			t.Errorf("%s: patch %s", c.Name, c.Patch)
		}
	}
	if err != nil || !slices.Equal(names, []string{"workers", "workers-b"}) {
		t.Errorf("frozen are %v, error %v", names, err)
	}
	if _, err := action.Freeze(v, view.Ref{Kind: view.MachineSet, Namespace: "team", Name: "set"}, false); err == nil || !strings.Contains(err.Error(), "freeze that") {
		t.Errorf("a set of a deployment: %v", err)
	}
	if _, err := action.Freeze(v, view.Ref{Kind: view.MachineDeployment, Namespace: "team", Name: "none"}, false); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a deployment that does not exist: %v", err)
	}
}

func TestHistoryHasAllRevisionsOrOne(t *testing.T) {
	all, err := action.History(deployment(nil), 0)
	if err != nil || len(all) != 3 || !all[2].Current || all[0].Current {
		t.Errorf("got %+v, %v", all, err)
	}
	one, err := action.History(deployment(nil), 2)
	if err != nil || len(one) != 1 || one[0].Version != "v2" {
		t.Errorf("got %+v, %v", one, err)
	}
	if _, err := action.History(deployment(nil), 9); err == nil {
		t.Error("revision 9 is found")
	}
}

func TestTheHistoryOfAPoolIsThatOfItsParts(t *testing.T) {
	pool := &machinev1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	part := func(name string, revisions int) machinev1alpha1.MachineDeployment {
		d := deployment(nil)
		d.Name, d.OwnerReferences = name, []metav1.OwnerReference{{Kind: view.NodePool, Name: "web", Controller: ptr.To(true)}}
		d.Status.Revisions = d.Status.Revisions[:revisions]
		return *d
	}
	v := &view.View{Pools: []machinev1alpha1.NodePool{*pool}, Deployments: []machinev1alpha1.MachineDeployment{part("web-a", 3), part("web-b", 1), *deployment(nil)}}
	for name, tc := range map[string]struct {
		only int64
		want []string
	}{
		"All":                  {0, []string{"web-a 1", "web-a 2", "web-a 3", "web-b 1"}},
		"OneThatNotAllOfThem":  {2, []string{"web-a 2"}},
		"OneThatNoneOfThemHas": {9, nil},
	} {
		t.Run(name, func(t *testing.T) {
			entries, err := action.HistoryOfPool(v, pool, tc.only)
			var got []string
			for _, e := range entries {
				got = append(got, fmt.Sprintf("%s %d", e.Of, e.Revision.Revision))
			}
			if !slices.Equal(got, tc.want) || (err != nil) != (tc.want == nil) {
				t.Errorf("got %v, want %v, error %v", got, tc.want, err)
			}
		})
	}
}
