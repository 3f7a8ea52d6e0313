package diagnosis_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

func TestReplacementsAreThoseOfThePoolOrTheOnlyOwner(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	list := func(machine string, minute int) []machinev1alpha1.ReplacedMachine {
		return []machinev1alpha1.ReplacedMachine{{Machine: machine, Time: metav1.NewTime(at.Add(time.Duration(minute) * time.Minute)), Reason: machinev1alpha1.ReplacedDeleted}}
	}
	meta := func(name string, owner ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "team", Name: name, UID: "uid-of-team", OwnerReferences: owner}
	}
	v := &view.View{
		Pools: []machinev1alpha1.NodePool{{ObjectMeta: meta("web"), Status: machinev1alpha1.NodePoolStatus{Replacements: list("of-pool", 3)}}},
		Deployments: []machinev1alpha1.MachineDeployment{
			{ObjectMeta: meta("workers"), Status: machinev1alpha1.MachineDeploymentStatus{Replacements: list("of-deployment", 1)}},
			{ObjectMeta: meta("web-a", metav1.OwnerReference{Kind: view.NodePool, Name: "web", UID: "uid-of-team", Controller: ptr.To(true)}), Status: machinev1alpha1.MachineDeploymentStatus{Replacements: list("of-pool", 3)}},
		},
		Sets: []machinev1alpha1.MachineSet{{ObjectMeta: meta("lone"), Status: machinev1alpha1.MachineSetStatus{Replacements: list("of-set", 2)}}},
	}
	all, err := diagnosis.Replacements(v, nil)
	var names []string
	for _, r := range all {
		names = append(names, r.Of.String()+" "+r.Machine)
	}
	if is := strings.Join(names, ", "); err != nil || is != "md/workers of-deployment, ms/lone of-set, np/web of-pool" {
		t.Errorf("%s, %v", is, err)
	}
	for ref, want := range map[view.Ref]string{
		{Kind: view.NodePool, Namespace: "team", Name: "web"}:            "of-pool",
		{Kind: view.MachineDeployment, Namespace: "team", Name: "web-a"}: "of-pool",
		{Kind: view.MachineSet, Namespace: "team", Name: "lone"}:         "of-set",
	} {
		if is, err := diagnosis.Replacements(v, &ref); err != nil || len(is) != 1 || is[0].Machine != want {
			t.Errorf("%s: %v, %v", ref, is, err)
		}
	}
	if _, err := diagnosis.Replacements(v, &view.Ref{Kind: view.NodePool, Namespace: "team", Name: "nosuch"}); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("error %v", err)
	}
	_, err = diagnosis.Why(v, view.Ref{Kind: view.Machine, Namespace: "team", Name: "of-pool"}, at)
	const want = `Machine "of-pool" not found in namespace "team": it was replaced at 2026-01-01T12:03:00Z (Deleted; by: unknown: see the audit log); kubectl drover history np/web -n team shows more`
	if err == nil || err.Error() != want {
		t.Errorf("why of a Machine that was replaced: %v, want %s", err, want)
	}
}
