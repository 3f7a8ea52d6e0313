package function

import (
	"encoding/json"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
	"google.golang.org/protobuf/types/known/structpb"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/userdata"
)

const (
	aMachine = `{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "Machine", "metadata": {"namespace": "ns", "name": "m", "uid": "6f8e9d10"},
		"spec": {"version": "v1.35.4", "classRef": {"name": "small"}}, "status": `
	aClass = `{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineClass", "metadata": {"namespace": "ns", "name": "small"},
		"spec": {"operatingSystem": {"provisioning": "CloudInit", "kubeletDownloadURL": "https://dl.k8s.io/release"}}}`
)

// A world has the parts of a request, as JSON.
type world struct {
	status, vm, node string
	noClass          bool
	join             plan.JoinState
}

func (w world) answer(t *testing.T) plan.Bootstrap {
	t.Helper()
	join, err := json.Marshal(w.join)
	if err != nil {
		t.Fatal(err)
	}
	value := func(s string) *structpb.Value { return structpb.NewStructValue(resource.MustStructJSON(s)) }
	req := &fnv1.RunFunctionRequest{
		Input:             resource.MustStructJSON(`{"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Bootstrap"}`),
		Observed:          &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(aMachine + w.status + "}")}, Resources: map[string]*fnv1.Resource{}},
		Context:           &structpb.Struct{Fields: map[string]*structpb.Value{step.ContextJoin: value(string(join))}},
		RequiredResources: map[string]*fnv1.Resources{"class": {}},
	}
	if !w.noClass {
		req.RequiredResources["class"].Items = []*fnv1.Resource{{Resource: resource.MustStructJSON(aClass)}}
	}
	if w.vm != "" {
		req.Observed.Resources[machinev1alpha1.ResourceVM] = &fnv1.Resource{Resource: resource.MustStructJSON(w.vm)}
	}
	if w.node != "" {
		req.Context.Fields[step.ContextNode] = value(w.node)
	}
	rsp, err := runBootstrap(time.Time{}, req)
	if err != nil {
		t.Fatal(err)
	}
	out := plan.Bootstrap{}
	if found, err := step.Context(&fnv1.RunFunctionRequest{Context: rsp.GetContext()}, step.ContextBootstrap, &out); err != nil || !found {
		t.Fatalf("no answer: %v", err)
	}
	return out
}

// TestAForgedStatusGivesNoToken: otherwise a client with write access to the status of a Machine
// could obtain a token of the target cluster without a class and without a VM.
func TestAForgedStatusGivesNoToken(t *testing.T) {
	const forged, vm = `{"providerID": "aws:///eu-1/i-controlplane1"}`, `{"kind": "VM", "metadata": {"name": "m"}}`
	cases := map[string]struct {
		reason string
		world  world
		// minted reports whether a token may be minted.
		minted bool
	}{
		"WithoutClass":            {"the forged providerID took the place of the class", world{status: forged, noClass: true}, false},
		"WithClass":               {"no VM is created for a Machine that had one", world{status: forged}, false},
		"WithAllThatAStatusHas":   {"no status is an authority", world{status: `{"phase": "Joining", "providerID": "x", "nodeRef": {"kind": "Node", "name": "cp-1"}, "lastOperation": {"type": "Join", "state": "Processing"}}`, noClass: true}, false},
		"WithUserDataOfBefore":    {"what was published stays in the Secret, and its token is revoked", world{status: forged, join: plan.JoinState{Published: true, Hash: "x"}}, false},
		"NoProviderIDAndNoClass":  {"there is nothing to create a VM from", world{status: `{"phase": "Joining"}`, noClass: true}, false},
		"AVMThatWasNotBegun":      {"the Machine has a class and a VM resource: it may join as any other", world{status: forged, vm: vm}, true},
		"AMachineThatIsNotForged": {"it may join", world{status: `{}`}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := tc.world.answer(t)
			if minted := d.Join != nil && !d.Join.Revoked; minted != tc.minted {
				t.Errorf("a token is minted: %t: %s: %+v", minted, tc.reason, d.Join)
			}
			if !tc.minted && (d.SecretName != "" || d.Join != nil && (d.Join.UserData != "" || !d.Join.Frozen)) {
				t.Errorf("user data is given: %s: %+v", tc.reason, d)
			}
		})
	}
}

func TestUserDataFollowsTheMachineUntilAVMMayExist(t *testing.T) {
	const pending, vm = `{}`, `{"kind": "VM", "metadata": {"name": "m", "annotations": {"crossplane.io/external-create-pending": "2030-01-01T12:00:00Z"}}}`
	first := world{status: pending}.answer(t)
	published := plan.JoinState{Published: true, Hash: userdata.Hash(first.Join.UserData, "")}
	stale := plan.JoinState{Published: true, Hash: "of another template"}
	for name, tc := range map[string]struct {
		reason        string
		world         world
		given, frozen bool
	}{
		"WhatIsPublishedIsGiven":       {"the VM can be created", world{status: pending, join: published}, true, false},
		"AnotherTemplateIsWaitedFor":   {"the VM must not be created from the old one", world{status: pending, join: stale}, false, false},
		"AClassThatIsDeletedLater":     {"what is published stays, for when the class is back", world{status: pending, join: published, noClass: true}, false, true},
		"ACreationThatBegan":           {"the VM may have been made from it", world{status: pending, join: stale, vm: vm}, true, true},
		"ACreationThatBeganAndNoClass": {"a VM needs no class any more", world{status: pending, join: stale, vm: vm, noClass: true}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := tc.world.answer(t)
			if d.Join == nil || d.Join.Revoked || d.Join.Frozen != tc.frozen || (d.SecretName != "") != tc.given {
				t.Errorf("given %t, request %+v: %s", d.SecretName != "", d.Join, tc.reason)
			}
			if !tc.frozen && d.Join.UserData != first.Join.UserData {
				t.Errorf("another template than of the Machine:\n%s", d.Join.UserData)
			}
		})
	}
}

func TestANodeThatJoinedRevokesTheToken(t *testing.T) {
	const vm = `{"kind": "VM", "metadata": {"name": "m", "annotations": {"crossplane.io/external-name": "vm-1"}}}`
	for name, tc := range map[string]struct {
		world world
		want  bool
	}{
		"NoNodeYet":                 {world{status: `{}`, vm: vm}, false},
		"OnlyParametersOfOne":       {world{status: `{}`, vm: vm, node: `{"parameters": {"providerID": "x"}, "observation": {}}`}, false},
		"OneThatIsObserved":         {world{status: `{}`, vm: vm, node: `{"parameters": {}, "observation": {"nodeName": "m", "present": true}}`}, true},
		"OneThatTheStatusRemembers": {world{status: `{"nodeRef": {"kind": "Node", "name": "m"}}`, vm: vm}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.world.answer(t).Join.Revoked; got != tc.want {
				t.Errorf("revoked: %t", got)
			}
		})
	}
}
