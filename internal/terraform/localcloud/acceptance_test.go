package localcloud_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-exec/tfexec"
	tfjson "github.com/hashicorp/terraform-json"

	"github.com/drover-dev/drover/internal/lift"
	api "github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/internal/terraform/localcloud"
	"github.com/drover-dev/drover/test/kit/terraformcli"
)

const address = "localcloud_virtual_machine.a"

const configuration = `
terraform {
  required_providers {
    localcloud = { source = "drover-dev/localcloud" }
  }
}

variable "size" { default = "small" }
variable "team" { default = "red" }

resource "localcloud_virtual_machine" "a" {
  name      = "a"
  image     = "ubuntu-24.04"
  size      = var.size
  user_data = "#cloud-config\n{}\n"
  tags      = { team = var.team }

  timeouts {
    create = "1m"
  }
}

output "address" {
  value = one([for a in localcloud_virtual_machine.a.addresses : a.address if a.type == "InternalIP"])
}
`

// TestTerraform leads one VM through its life, with the real Terraform and the real
// local cloud. Each step goes on where the one before it ended.
func TestTerraform(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the local cloud and runs Terraform")
	}
	ctx := context.Background()
	cloud := startCloud(t)
	if _, err := cloud.SetSettings(ctx, api.Settings{CreateTime: api.Duration(time.Second), ShutdownTime: api.Duration(time.Second)}); err != nil {
		t.Fatal(err)
	}
	tf, dir := terraformcli.Start(t, localcloud.Address)
	// Steps change the environment by which the provider knows the cloud.
	t.Setenv("TF_CLI_CONFIG_FILE", filepath.Join(filepath.Dir(dir), "terraformrc"))
	t.Setenv("CHECKPOINT_DISABLE", "1")
	if err := tf.SetEnv(nil); err != nil {
		t.Fatal(err)
	}
	terraformcli.Write(t, filepath.Join(dir, "main.tf"), configuration)
	if err := tf.Init(ctx); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, tf: tf, cloud: cloud}

	step := func(name string, f func(w *world)) {
		if !t.Run(name, func(t *testing.T) { f(&world{t: t, tf: tf, cloud: cloud}) }) {
			t.FailNow()
		}
	}
	step("TheSchemaIsTheOneThatUpjetIsGiven", func(w *world) {
		got, err := tf.ProvidersSchema(ctx)
		w.ok(err)
		b, err := lift.SchemaJSON(ctx, localcloud.Address, localcloud.New(""))
		w.ok(err)
		want := &tfjson.ProviderSchemas{}
		w.ok(json.Unmarshal(b, want))
		if d := cmp.Diff(asJSON(w, want.Schemas[localcloud.Address].ResourceSchemas), asJSON(w, got.Schemas[localcloud.Address].ResourceSchemas)); d != "" {
			w.t.Errorf("(-want +got):\n%s", d)
		}
	})
	step("ApplyCreatesAndWaitsUntilItRuns", func(w *world) {
		w.ok(w.apply())
		got := w.vm()
		if got.State != api.StateRunning || got.Tags["team"] != "red" {
			w.t.Errorf("state %s, tags %v", got.State, got.Tags)
		}
		s := w.state(address)
		for k, want := range map[string]any{"id": got.ID, "provider_id": got.ProviderID, "state": "Running", "zone": api.DefaultZone} {
			if s[k] != want {
				w.t.Errorf("%s is %v, want %v", k, s[k], want)
			}
		}
		out, err := tf.Output(ctx)
		w.ok(err)
		if got, want := string(out["address"].Value), `"`+got.Addresses[0].Address+`"`; got != want {
			w.t.Errorf("address %s, want %s", got, want)
		}
	})
	step("PlanHasNoDiffThen", func(w *world) { w.noDiff() })
	step("TagsChangeInPlace", func(w *world) {
		id := w.vm().ID
		w.plan("update", tfexec.Var("team=blue"))
		w.ok(w.apply(tfexec.Var("team=blue")))
		if got := w.vm(); got.ID != id || got.Tags["team"] != "blue" {
			w.t.Errorf("VM %s with tags %v, want %s with team blue", got.ID, got.Tags, id)
		}
	})
	step("DriftIsSeenAndMended", func(w *world) {
		_, err := cloud.UpdateVM(ctx, w.vm().ID, api.UpdateVMRequest{Tags: map[string]string{"team": "green"}})
		w.ok(err)
		w.plan("update")
		w.ok(w.apply())
		if got := w.vm().Tags["team"]; got != "red" {
			w.t.Errorf("team %q, want red", got)
		}
	})
	step("AnotherSizeReplacesIt", func(w *world) {
		id := w.vm().ID
		w.plan("delete,create", tfexec.Var("size=large"))
		w.ok(w.apply(tfexec.Var("size=large")))
		if got := w.vm(); got.ID == id || got.Size != "large" {
			w.t.Errorf("VM %s of size %s, want another than %s of size large", got.ID, got.Size, id)
		}
		w.ok(w.apply())
	})
	step("AVMThatVanishedIsCreatedAgain", func(w *world) {
		_, err := cloud.CreateFault(ctx, api.Fault{Kind: api.FaultVanish})
		w.ok(err)
		w.plan("create")
		w.ok(w.apply())
		w.noDiff()
	})
	step("ImportTakesOverWithoutReplacing", func(w *world) {
		id := w.vm().ID
		w.ok(tf.StateRm(ctx, address))
		w.ok(tf.Import(ctx, address, id))
		// The cloud does not return the user data, so it is taken over once.
		w.plan("update")
		w.ok(w.apply())
		w.noDiff()
		if got := w.vm().ID; got != id {
			w.t.Errorf("VM %s, want %s", got, id)
		}
	})
	step("DestroyWaitsUntilItIsGone", func(w *world) {
		w.ok(tf.Destroy(ctx))
		if l := vms(w.t, cloud); len(l) != 0 {
			w.t.Errorf("there still is %v", l)
		}
	})
	step("ARefusedCreationSaysTheCloudsCode", func(w *world) {
		_, err := cloud.CreateFault(ctx, api.Fault{Kind: api.FaultCreateFails, Code: api.CodeCapacityExhausted, Message: "no small left"})
		w.ok(err)
		w.failsWith("CapacityExhausted: no small left")
		if l := vms(w.t, cloud); len(l) != 0 {
			w.t.Errorf("there is %v", l)
		}
	})
	step("AVMThatFailsSaysTheCloudsCodeAndIsReplaced", func(w *world) {
		_, err := cloud.CreateFault(ctx, api.Fault{Kind: api.FaultCreateFails, Code: api.CodeInternal, Message: "host died", Delay: api.Duration(time.Millisecond)})
		w.ok(err)
		w.failsWith("Internal: host died")
		id := w.vm().ID
		w.plan("delete,create")
		w.ok(w.apply())
		if got := w.vm(); got.ID == id || got.State != api.StateRunning {
			w.t.Errorf("VM %s is %s, want another than %s that runs", got.ID, got.State, id)
		}
	})
	step("ABusyCloudIsWaitedFor", func(w *world) {
		w.ok(tf.Destroy(ctx))
		_, err := cloud.CreateFault(ctx, api.Fault{Kind: api.FaultUnavailable, Delay: api.Duration(time.Second)})
		w.ok(err)
		w.ok(w.apply())
		if got := w.vm().State; got != api.StateRunning {
			w.t.Errorf("it is %s", got)
		}
	})
	step("ALostAnswerIsCalledSo", func(w *world) {
		w.ok(tf.Destroy(ctx))
		_, err := cloud.CreateFault(ctx, api.Fault{Kind: api.FaultCreateAnswerLost})
		w.ok(err)
		w.failsWith("CreationResultUnknown: ")
	})
	step("ABadTokenIsRefused", func(w *world) {
		w.t.Setenv(localcloud.EnvToken, "wrong")
		w.failsWith("Unauthenticated: ")
	})
	w.ok(tf.Destroy(ctx))
}

// world is the environment of a step.
type world struct {
	t     *testing.T
	tf    *tfexec.Terraform
	cloud *api.Client
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) apply(opts ...tfexec.ApplyOption) error {
	return w.tf.Apply(context.Background(), opts...)
}

func (w *world) failsWith(text string) {
	w.t.Helper()
	err := w.apply()
	// Terraform breaks lines to the width of a terminal.
	if err == nil || !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "│", "")), " "), text) {
		w.t.Fatalf("error %v, want one with %q", err, text)
	}
}

// plan expects one change of the VM, which needs the actions.
func (w *world) plan(actions string, vars ...*tfexec.VarOption) {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "plan")
	opts := []tfexec.PlanOption{tfexec.Out(file)}
	for _, v := range vars {
		opts = append(opts, v)
	}
	diff, err := w.tf.Plan(context.Background(), opts...)
	w.ok(err)
	if !diff {
		w.t.Fatalf("the plan is empty, want %s", actions)
	}
	p, err := w.tf.ShowPlanFile(context.Background(), file)
	w.ok(err)
	for _, c := range p.ResourceChanges {
		var got []string
		for _, a := range c.Change.Actions {
			got = append(got, string(a))
		}
		if s := strings.Join(got, ","); s != actions {
			w.t.Fatalf("%s: %s, want %s", c.Address, s, actions)
		}
	}
}

func (w *world) noDiff() {
	w.t.Helper()
	diff, err := w.tf.Plan(context.Background())
	w.ok(err)
	if diff {
		w.t.Error("the plan is not empty")
	}
}

// vm is the only one that the cloud has.
func (w *world) vm() api.VM {
	w.t.Helper()
	l := vms(w.t, w.cloud)
	if len(l) != 1 {
		w.t.Fatalf("the cloud has %d VMs, want 1: %v", len(l), l)
	}
	return l[0]
}

func (w *world) state(address string) map[string]any {
	w.t.Helper()
	s, err := w.tf.Show(context.Background())
	w.ok(err)
	for _, r := range s.Values.RootModule.Resources {
		if r.Address == address {
			return r.AttributeValues
		}
	}
	w.t.Fatalf("the state has no %s", address)
	return nil
}

func asJSON(w *world, v any) any {
	b, err := json.Marshal(v)
	w.ok(err)
	var out any
	w.ok(json.Unmarshal(b, &out))
	return out
}
