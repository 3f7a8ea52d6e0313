package diagnosis_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/render"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

func TestTheTreeHasTheInfraMachineOfAVMWithItsConditions(t *testing.T) {
	m := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m"}}
	v := &view.View{Machines: []machinev1alpha1.Machine{m}, Resources: []view.Resource{{
		Role: machinev1alpha1.ResourceVM, Kind: "VirtualMachine", Namespace: "default", Name: "m-4v27w", Machine: "m",
		InfraMachine: &view.InfraMachine{Kind: "AWSMachine", Namespace: "default", Name: "m-4v27w", Conditions: []metav1.Condition{
			{Type: "Ready", Status: metav1.ConditionFalse, Reason: "InstanceProvisionFailed", Message: "no capacity"},
			{Type: "Paused", Status: metav1.ConditionFalse, Reason: "NotPaused"},
			{Type: "SecurityGroupsReady", Status: metav1.ConditionTrue, Reason: "Ready"},
		}},
	}}}
	branches, err := diagnosis.Tree(v, nil, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	got := render.Screen{Width: 200}.Tree(branches)
	if want := "AWSMachine/m-4v27w"; !strings.Contains(strings.ToLower(got), strings.ToLower(want)) || !strings.Contains(got, "Ready False (InstanceProvisionFailed), Paused False (NotPaused), SecurityGroupsReady True\n") {
		t.Errorf("the tree is\n%s", got)
	}
	if vm := branches[0].Branches[0]; len(vm.Branches) != 1 || vm.Branches[0].State != diagnosis.InProgress {
		t.Errorf("the InfraMachine is %+v", vm.Branches)
	}
}

func TestTheTreeHasTheBootstrapConfigOfAMachineWithItsConditions(t *testing.T) {
	m := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m"}}
	v := &view.View{Machines: []machinev1alpha1.Machine{m}, Resources: []view.Resource{{
		Role: machinev1alpha1.ResourceBootstrap, Kind: "Bootstrap", Namespace: "default", Name: "m-bootstrap", Machine: "m",
		InfraMachine: &view.InfraMachine{Kind: "KubeadmConfig", Namespace: "default", Name: "m-bootstrap", Conditions: []metav1.Condition{
			{Type: "CertificatesAvailable", Status: metav1.ConditionFalse, Reason: "CertificatesCorrupted"},
		}},
	}}}
	branches, err := diagnosis.Tree(v, nil, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	got := render.Screen{Width: 200}.Tree(branches)
	if !strings.Contains(got, "KubeadmConfig/m-bootstrap") && !strings.Contains(got, "kubeadmconfig/m-bootstrap") || !strings.Contains(got, "CertificatesAvailable False (CertificatesCorrupted)") {
		t.Errorf("the tree is\n%s", got)
	}
}
