package kit

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/internal/names"
)

const (
	aUID    = types.UID("uid-a")
	drover  = "system:serviceaccount:drover-system:drover"
	kubelet = "system:node:"
)

var (
	aNode  = names.OfMachine("a", aUID)
	aToken = bootstraputil.BootstrapTokenSecretName(names.TokenID(aUID))
	zero   = time.Unix(1e9, 0)
)

// wrote returns a request to the target cluster at a second.
func wrote(second float64, user, verb, path, namespace, name, body string) Write {
	w := Write{Verb: verb, Target: true, RequestObject: []byte(body), RequestReceivedTimestamp: zero.Add(time.Duration(second * float64(time.Second)))}
	w.User.Username = user
	w.ObjectRef.Resource, w.ObjectRef.Subresource, _ = strings.Cut(path, "/")
	w.ObjectRef.Namespace, w.ObjectRef.Name = namespace, name
	w.ResponseStatus.Code = 201
	return w
}

func changed(second int, kind localcloud.ChangeKind, vm string, uid types.UID) localcloud.Change {
	return localcloud.Change{At: zero.Add(time.Duration(second) * time.Second), Kind: kind, VM: vm, Name: aNode, Tags: map[string]string{machinev1alpha1.TagMachineUID: string(uid)}}
}

// aLife is the evidence of a Machine without a broken guarantee.
func aLife() Evidence {
	return Evidence{
		Namespace: "ns",
		Machines:  map[types.UID]string{aUID: "a"},
		VMs: []localcloud.Change{
			changed(2, localcloud.ChangeCreated, "vm-1", aUID),
			changed(20, localcloud.ChangeTerminating, "vm-1", aUID),
			changed(21, localcloud.ChangeGone, "vm-1", aUID),
		},
		Writes: []Write{
			wrote(1, drover, "create", "secrets", "kube-system", aToken, ""),
			wrote(4, kubelet+aNode, "create", "nodes", "", aNode, ""),
			wrote(5, drover, "delete", "secrets", "kube-system", aToken, ""),
			wrote(6, "system:kube-scheduler", "create", "pods/binding", "ns", "pod", fmt.Sprintf(`{"target":{"kind":"Node","name":%q}}`, aNode)),
			wrote(7, "controllers", "update", "poddisruptionbudgets/status", "ns", "pdb", `{"status":{"currentHealthy":3,"desiredHealthy":2,"expectedPods":3}}`),
			wrote(10, drover, "patch", "nodes", "", aNode, `{"spec":{"unschedulable":true}}`),
			wrote(11, drover, "create", "pods/eviction", "ns", "pod", ""),
			wrote(11.5, "controllers", "update", "poddisruptionbudgets/status", "ns", "pdb", `{"status":{"currentHealthy":2,"desiredHealthy":2,"expectedPods":3}}`),
			wrote(12, kubelet+aNode, "delete", "pods", "ns", "pod", ""),
			wrote(15, drover, "delete", "nodes", "", aNode, ""),
		},
	}
}

func TestEvidenceFindsEachBrokenPromise(t *testing.T) {
	without := func(verb, path string) func(*Evidence) {
		return func(e *Evidence) {
			e.Writes = slices.DeleteFunc(e.Writes, func(w Write) bool { return w.Verb == verb && w.Path() == path })
		}
	}
	at := func(second float64, verb, path string) func(*Evidence) {
		return func(e *Evidence) {
			for i, w := range e.Writes {
				if w.Verb == verb && w.Path() == path {
					e.Writes[i].RequestReceivedTimestamp = zero.Add(time.Duration(second * float64(time.Second)))
				}
			}
		}
	}
	add := func(w ...Write) func(*Evidence) { return func(e *Evidence) { e.Writes = append(e.Writes, w...) } }
	cases := map[string]struct {
		change func(*Evidence)
		want   string
	}{
		"AWholeLifeBreaksNone": {func(*Evidence) {}, ""},
		"ASecondVM": {func(e *Evidence) {
			e.VMs = append(e.VMs, changed(3, localcloud.ChangeCreated, "vm-2", aUID))
		}, "Machine a (uid-a) had 2 VMs: vm-1, vm-2"},
		"AVMOfNoMachine": {func(e *Evidence) {
			e.VMs = append(e.VMs, changed(3, localcloud.ChangeCreated, "vm-2", "uid-b"))
		}, `VM vm-2 (` + aNode + `) was created for the Machine with UID "uid-b", which never existed`},
		"ATokenThatIsLeft":                {without("delete", "secrets"), "was never deleted, and its Node had joined"},
		"ATokenThatIsLeftOfAMachineAlone": {func(e *Evidence) { without("delete", "secrets")(e); without("create", "nodes")(e) }, "was never deleted"},
		"ATokenThatIsDeletedLate":         {at(80, "delete", "secrets"), "was deleted 1m16s after its Node had joined, and a process ran for 1m16s of it: allowed are 1m0s"},
		"ATokenThatIsDeletedLateAfterKills": {func(e *Evidence) {
			at(80, "delete", "secrets")(e)
			e.Kills = []time.Time{zero.Add(78 * time.Second), zero.Add(3 * time.Second), zero.Add(90 * time.Second)}
		}, "and a process ran for 1m14s of it: allowed are 1m0s"},
		"ATokenThatIsDeletedByTheFirstProcessThatLives": {func(e *Evidence) {
			at(80, "delete", "secrets")(e)
			e.Kills = []time.Time{zero.Add(30 * time.Second), zero.Add(60 * time.Second)}
		}, ""},
		"ATokenThatIsMadeAgain":               {add(wrote(3, drover, "create", "secrets", "kube-system", aToken, "")), "was made again 2s after the first one"},
		"ATokenThatIsMadeAgainForAJoinedNode": {add(wrote(4.5, drover, "create", "secrets", "kube-system", aToken, "")), "was made 500ms after the Node of Machine a had joined"},
		"ATokenOfNoMachine":                   {add(wrote(3, drover, "create", "secrets", "kube-system", "bootstrap-token-other", "")), "was made for no Machine"},
		"ANodeThatIsLeft":                     {without("delete", "nodes"), "it was deleted before its Node"},
		"ANodeThatIsDeletedTooLate":           {at(25, "delete", "nodes"), "it was deleted before its Node"},
		"ANodeThatIsNotCordoned":              {without("patch", "nodes"), "its Node ran pod pod and was never cordoned"},
		"APodThatIsNotEvicted":                {without("create", "pods/eviction"), "pod pod was not evicted before"},
		"APodThatIsEvictedTooEarly":           {at(9, "create", "pods/eviction"), "pod pod was evicted before its Node was cordoned"},
		"APodThatIsNotGone":                   {without("delete", "pods"), "pod pod was evicted and not gone yet"},
		"APodThatIsGoneAfterItsNode":          {at(16, "delete", "pods"), "its Node was deleted before pod pod was gone"},
		"APodThatWasBoundAfterTheCordon":      {func(e *Evidence) { at(10.5, "create", "pods/binding")(e); without("delete", "pods")(e) }, ""},
		"APodThatEndedBefore":                 {func(e *Evidence) { at(8, "delete", "pods")(e); without("create", "pods/eviction")(e) }, ""},
		"APodThatDroverDeletes":               {add(wrote(11, drover, "delete", "pods", "ns", "pod", "")), "pod pod was deleted, and not evicted"},
		"ABudgetThatIsExceeded": {
			add(wrote(13, "controllers", "update", "poddisruptionbudgets/status", "ns", "pdb", `{"status":{"currentHealthy":1,"desiredHealthy":2,"expectedPods":3}}`)),
			"1 pods of PodDisruptionBudget pdb were healthy, at least 2 must be",
		},
		"ANodeThatAnotherClientDeletes": {func(e *Evidence) {
			without("delete", "nodes")(e)
			add(wrote(15, "system:kube-controller-manager", "delete", "nodes", "", aNode, ""))(e)
		}, "its Node was deleted by another client than Drover"},
		"ADeletionThatIsInterruptedCounts": {func(e *Evidence) {
			for i, w := range e.Writes {
				if w.Verb == "delete" && w.IsByDrover() || w.Path() == "pods/eviction" {
					e.Writes[i].ResponseStatus.Code = 504
				}
			}
		}, ""},
		"ACreationThatIsInterruptedCountsNot": {func(e *Evidence) {
			w := wrote(0.5, drover, "create", "secrets", "kube-system", aToken, "")
			w.ResponseStatus.Code = 504
			e.Writes = append(e.Writes, w)
		}, ""},
		"ADeletionThatIsInterruptedAndRepeatedLateCountsLate": {func(e *Evidence) {
			w := wrote(14, drover, "delete", "nodes", "", aNode, "")
			w.ResponseStatus.Code = 504
			at(25, "delete", "nodes")(e)
			e.Writes = append(e.Writes, w)
		}, "it was deleted before its Node"},
		"ARequestThatIsRefusedCountsNot": {func(e *Evidence) {
			w := wrote(3, drover, "create", "secrets", "kube-system", aToken, "")
			w.ResponseStatus.Code = 409
			e.Writes = append(e.Writes, w)
		}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := aLife()
			tc.change(&e)
			got := e.Broken()
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("broken: %v", got)
			case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)):
				t.Errorf("broken: %v\nwant one of: %s", got, tc.want)
			}
		})
	}
	if e := aLife(); e.Evicted() != 1 {
		t.Errorf("%d pods were evicted, want 1", e.Evicted())
	}
}

func TestReadWritesLeavesOutALineThatIsBeingWritten(t *testing.T) {
	log := `{"verb":"create","user":{"username":"system:serviceaccount:crossplane-system:drover-provider-local-0"},"objectRef":{"resource":"virtualmachines","subresource":"status","name":"a"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z"}
{"verb":"pat`
	var got []Write
	if err := ReadWrites(strings.NewReader(log), func(w Write) { got = append(got, w) }); err != nil || len(got) != 1 {
		t.Fatalf("%d writes, %v", len(got), err)
	}
	w := got[0]
	if w.Path() != "virtualmachines/status" || w.IsByDrover() || !w.IsByPackage("provider-local") || !w.IsAccepted() || w.RequestReceivedTimestamp.Nanosecond() != 6000 {
		t.Errorf("write %+v", w)
	}
	if err := ReadWrites(strings.NewReader("garbage"), func(Write) {}); err == nil {
		t.Error("garbage was read without an error")
	}
}
