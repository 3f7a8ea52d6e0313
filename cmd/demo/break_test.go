package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
)

// TestEachFaultOfTheMenuExistsInTheLocalCloud compares the menu with the table of the local cloud's
// API, and with the rules by which it validates a fault.
func TestEachFaultOfTheMenuExistsInTheLocalCloud(t *testing.T) {
	readme, err := os.ReadFile("../../cluster/cloud/README.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{endFaults: true}
	for _, f := range menu {
		if names[f.name] {
			t.Errorf("%s: the name is not unique", f.name)
		}
		names[f.name] = true
		if !strings.Contains(string(readme), "\n| "+string(f.fault.Kind)+" |") {
			t.Errorf("%s: the local cloud has no fault %s", f.name, f.fault.Kind)
		}
		if _, ok := localcloud.StatusOfCode(f.fault.Code); f.fault.Code != "" && !ok {
			t.Errorf("%s: the local cloud has no error code %s", f.name, f.fault.Code)
		}
		if (f.fault.Code != "") != (f.fault.Kind == localcloud.FaultCreateFails) {
			t.Errorf("%s: CreateFails, and no other kind of the menu, has a code: %q", f.name, f.fault.Code)
		}
		atOnce := f.fault.Kind == localcloud.FaultVanish || f.fault.Kind == localcloud.FaultKubeletStops
		if f.oneMachine != atOnce || f.oneMachine != strings.Contains(f.look, "ma/MACHINE") {
			t.Errorf("%s: a fault that acts at once would hit all Machines, unless it is for one, which the text names", f.name)
		}
		if !atOnce && f.fault.Count == 0 {
			t.Errorf("%s: the number of creations is not stated", f.name)
		}
		if !strings.HasPrefix(f.look, "kubectl ") || strings.Contains(f.look+f.title, "\n") {
			t.Errorf("%s: the advice must be one line that begins with a command: %q", f.name, f.look)
		}
	}
	if len(menu) != 10 {
		t.Errorf("the menu has %d faults, and the README promises ten", len(menu))
	}
}

// A cloud is a stand-in for the API of the local cloud.
type cloud struct {
	vms     []localcloud.VM
	faults  []localcloud.Fault
	created []localcloud.Fault
	deleted []string
}

func (c *cloud) client(t *testing.T) *localcloud.Client {
	t.Helper()
	answer := func(w http.ResponseWriter, v any) {
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/vms", func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query()["tag"]; !slices.Equal(got, []string{machinev1alpha1.TagNamespace + "=default"}) {
			t.Errorf("VMs of %v were requested", got)
		}
		answer(w, localcloud.VMList{Items: c.vms})
	})
	mux.HandleFunc("GET /v1/faults", func(w http.ResponseWriter, _ *http.Request) { answer(w, localcloud.FaultList{Items: c.faults}) })
	mux.HandleFunc("POST /v1/faults", func(w http.ResponseWriter, r *http.Request) {
		var f localcloud.Fault
		if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
			t.Error(err)
		}
		c.created = append(c.created, f)
		if f.Count == 0 {
			f.Count = len(c.vms)
		}
		w.WriteHeader(http.StatusCreated)
		answer(w, f)
	})
	mux.HandleFunc("DELETE /v1/faults/{id}", func(w http.ResponseWriter, r *http.Request) {
		c.deleted = append(c.deleted, r.PathValue("id"))
		if r.PathValue("id") == "used-up" {
			w.WriteHeader(http.StatusNotFound)
			answer(w, localcloud.NewError(localcloud.CodeNotFound, "no such fault"))
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	client, err := localcloud.NewClient(s.URL, "token")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func vm(machine string, state localcloud.State) localcloud.VM {
	out := localcloud.VM{State: state}
	out.Tags = map[string]string{machinev1alpha1.TagNamespace: "default"}
	if machine != "" {
		out.Tags[machinev1alpha1.TagMachine] = machine
	}
	return out
}

func TestABrokenCloud(t *testing.T) {
	ofDemo := map[string]string{machinev1alpha1.TagNamespace: "default"}
	quota := menu[0].fault
	quota.Match.Tags = ofDemo
	for _, tc := range []struct {
		name string
		// fault is the value of FAULT, and typed the input of the user, nil without a terminal.
		fault string
		typed io.Reader
		cloud cloud
		// created and deleted are the faults that the cloud must receive and end, and want is in the output.
		created []localcloud.Fault
		deleted []string
		want    []string
		err     string
	}{
		{name: "AFaultOfNewVMsIsNamed", fault: "quota", created: []localcloud.Fault{quota}, want: []string{"kubectl scale md workers --replicas=5", "kubectl drover why md/workers", "FAULT=none"}},
		{name: "AFaultHasANumberToo", fault: "1", created: []localcloud.Fault{quota}},
		{
			name: "OneRunningMachineIsHit", fault: "vanish",
			cloud: cloud{vms: []localcloud.VM{vm("", localcloud.StateRunning), vm("a", localcloud.StateFailed), vm("b", localcloud.StateRunning), vm("c", localcloud.StateRunning)}},
			created: []localcloud.Fault{{Kind: localcloud.FaultVanish, Match: localcloud.FaultMatch{Tags: map[string]string{
				machinev1alpha1.TagNamespace: "default", machinev1alpha1.TagMachine: "b",
			}}}},
			want: []string{"kubectl drover why ma/b:"},
		},
		{name: "NoMachineRuns", fault: "kubelet", cloud: cloud{vms: []localcloud.VM{vm("a", localcloud.StateFailed)}}, err: "run make demo"},
		{name: "AnUnknownFaultGetsTheNames", fault: "fire", err: "FAULT=fire: there is no such fault, must be one of quota, capacity, "},
		{name: "ANumberBeyondTheMenuIsUnknown", fault: "11", err: "FAULT=11: there is no such fault"},
		{
			name: "NoneEndsAllFaultsAlsoOneThatIsUsedUp", fault: "none",
			cloud:   cloud{faults: []localcloud.Fault{{ID: "f-1"}, {ID: "used-up"}, {ID: "f-3"}}},
			deleted: []string{"f-1", "used-up", "f-3"}, want: []string{"3 faults ended"},
		},
		{name: "OneFaultEnds", fault: "none", cloud: cloud{faults: []localcloud.Fault{{ID: "f-1"}}}, deleted: []string{"f-1"}, want: []string{"1 fault ended. "}},
		{name: "NoFaultEnds", fault: "none", want: []string{"There is no fault. "}},
		{name: "WithoutATerminalTheMenuIsPrinted", want: []string{" 1  quota ", "10  kubelet ", " 0  none "}},
		{name: "OnATerminalTheUserChooses", typed: strings.NewReader(" quota \n"), created: []localcloud.Fault{quota}, want: []string{" 1  quota ", "Look:"}},
		{name: "NothingIsTyped", typed: strings.NewReader(""), want: []string{"Fault (name or number"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := &strings.Builder{}
			err := breakDemo(t.Context(), tc.cloud.client(t), tc.fault, tc.typed, out)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.created, tc.cloud.created); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.deleted, tc.cloud.deleted); diff != "" {
				t.Errorf("ended faults (-want +got):\n%s", diff)
			}
			for _, text := range tc.want {
				if !strings.Contains(out.String(), text) {
					t.Errorf("there is no %q in\n%s", text, out)
				}
			}
		})
	}
}
