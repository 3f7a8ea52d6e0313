package machine

import (
	"context"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
)

// ownData decides as drover does, for a class that names a Secret.
func ownData(t *testing.T) func(context.Context, *fnRequest) (*fnResponse, error) {
	t.Helper()
	return func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		rsp, err := drover(t)(ctx, req)
		if err != nil {
			return nil, err
		}
		b := plan.Bootstrap{}
		into(t, rsp.GetContext().GetFields()[step.ContextBootstrap].GetStructValue(), &b)
		b.Join.UserData = ""
		if !b.Join.Frozen {
			b.Join.OwnUserData = &plan.OwnUserData{SecretName: "mine"}
		}
		join := plan.JoinState{}
		into(t, req.GetContext().GetFields()[step.ContextJoin].GetStructValue(), &join)
		if join.Problem != nil {
			rsp.Conditions = append(rsp.Conditions, condition(v1alpha1.ConditionValid, fnv1.Status_STATUS_CONDITION_FALSE, join.Problem.Reason))
		}
		return withBootstrap(t, rsp, b), nil
	}
}

func withBootstrap(t *testing.T, rsp *fnResponse, b plan.Bootstrap) *fnResponse {
	t.Helper()
	rsp.GetContext().GetFields()[step.ContextBootstrap].GetStructValue().Fields = structOf(t, b).GetFields()
	return rsp
}

func ownSecret(value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine", UID: "0f9b", Labels: map[string]string{v1alpha1.LabelUserData: "true"}},
		Data:       map[string][]byte{v1alpha1.UserDataKey: []byte(value)},
	}
}

// TestAMachineWithUserDataOfItsClass starts without the Secret, and ends with a Node that has neither label nor
// taint of Drover.
func TestAMachineWithUserDataOfItsClass(t *testing.T) {
	w := living(t)
	w.script = ownData(t)
	w.step()
	w.step()
	m := w.machine()
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionValid); c == nil || c.Reason != v1alpha1.ReasonUserDataNotFound || w.servers() != 0 {
		t.Fatalf("without the Secret: condition %+v, %d VMs", c, w.servers())
	}
	res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: nameOfM})
	if err != nil || res.RequeueAfter <= 0 || res.RequeueAfter > 15*time.Second {
		t.Errorf("it is tried again after %s, error %v", res.RequeueAfter, err)
	}

	if err := w.client.Create(t.Context(), ownSecret("#!/bin/sh\nhostname <<MACHINE_NAME>>\n")); err != nil {
		t.Fatal(err)
	}
	w.step()
	m = w.machine()
	own := m.Status.UserData
	if own == nil || own.SecretName != "mine" || own.Key != "userData" || len(own.Hash) != 32 || w.servers() != 1 {
		t.Fatalf("status %+v, %d VMs", own, w.servers())
	}
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionUserDataComplete)
	if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, `Secret "mine", key "userData"`) || len(w.events.of(v1alpha1.ReasonTokenPlaceholderMissing)) != 1 {
		t.Errorf("condition %+v, events %v", c, w.events.all)
	}

	// What changes now is for other Machines.
	s := ownSecret("#!/bin/sh\njoin <<BOOTSTRAP_TOKEN>>\n")
	w.update(s)
	w.provide("id", nodetest.ID)
	w.restart()
	w.step()
	if now := w.machine().Status.UserData; now == nil || *now != *own {
		t.Errorf("status %+v, want %+v", now, own)
	}
	w.join(nodetest.Joined(names.OfMachine("m", "uid-m"), "uid-1", "", nodetest.ID))
	w.step()
	if m := w.machine(); m.Status.NodeRef == nil || m.Status.Phase != v1alpha1.MachineRunning {
		t.Errorf("the Node has the name and the providerID: status %+v", m.Status)
	}
	if got := len(w.events.of(v1alpha1.ReasonTokenPlaceholderMissing)); got != 1 {
		t.Errorf("%d events", got)
	}
}
