package e2e

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-exec/tfexec"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	tfdrover "github.com/drover-dev/drover/internal/terraform/drover"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/kit/terraformcli"
)

// A stack is a configuration of a Terraform user.
type stack struct {
	t     *testing.T
	fleet kit.Fleet
	tf    *tfexec.Terraform
	file  string
	text  string
}

// write the configuration with replacements.
func (s *stack) write(replacements ...string) {
	s.t.Helper()
	s.text = strings.NewReplacer(replacements...).Replace(s.text)
	terraformcli.Write(s.t, s.file, s.text)
}

// ofProvider is the first part of a configuration.
func ofProvider() string {
	return fmt.Sprintf(`
terraform {
  required_providers {
    drover = { source = %q }
  }
}

provider "drover" {
  config_path = %q
}
`, tfdrover.Address, plane.Kubeconfig)
}

// settled fails the test if a plan would change a resource.
func (s *stack) settled() {
	s.t.Helper()
	file := filepath.Join(filepath.Dir(s.file), "plan")
	_, err := s.tf.Plan(s.t.Context(), tfexec.Out(file))
	must(s.t, err)
	plan, err := s.tf.ShowPlanFile(s.t.Context(), file)
	must(s.t, err)
	for _, c := range plan.ResourceChanges {
		if !c.Change.Actions.NoOp() && !c.Change.Actions.Read() {
			s.t.Fatalf("a plan would %v %s\nfrom %v\nto   %v", c.Change.Actions, c.Address, c.Change.Before, c.Change.After)
		}
	}
}

// applied fails the test if the configuration cannot be applied, or if a later plan has a diff.
func (s *stack) applied() {
	s.t.Helper()
	if err := s.tf.Apply(s.t.Context()); err != nil {
		s.t.Fatalf("%v\n%s", err, s.fleet.Describe(s.t.Context()))
	}
	s.settled()
}

// isRefused fails the test if the error of a plan or an apply lacks one of the texts.
func isRefused(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		// Terraform may break lines anywhere.
		if err == nil || !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "│", "")), " "), w) {
			t.Errorf("%q is not in the error %v", w, err)
		}
	}
}

// TestTerraformManagesAPool runs the real Terraform like a user: create, roll, drift, an
// impossible rollout, import and destroy. After each, there is no diff.
func TestTerraformManagesAPool(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	tf, dir := terraformcli.Start(t, tfdrover.Address)
	small := f.MachineSpec(kit.OldVersion)
	s := &stack{t: t, fleet: f, tf: tf, file: filepath.Join(dir, "main.tf"), text: ofProvider() + fmt.Sprintf(`
resource "drover_machine_class" "small" {
  namespace = %[1]q
  name      = "tf-small"
  spec = {
    provider    = "local"
    forProvider = { image = "ubuntu-24.04", size = "small" }
  }
  lifecycle { create_before_destroy = true }
}

resource "drover_machine_deployment" "web" {
  namespace = %[1]q
  name      = "web"
  labels    = { team = "red" }
  spec = {
    replicas = 2
    selector = { matchLabels = { pool = "web" } }
    strategy = { rollingUpdate = { maxSurge = 1, maxUnavailable = 0 } }
    template = {
      metadata = { labels = { pool = "web" } }
      spec = {
        classRef   = { name = drover_machine_class.small.name }
        clusterRef = { name = %[2]q }
        version    = %[3]q
        taints     = [{ key = "dedicated", value = "web", effect = "NoSchedule" }]
      }
    }
  }
  timeouts = { create = "1h", update = "1h", delete = "1h" }
}

data "drover_machine_deployment" "web" {
  namespace  = %[1]q
  name       = "web"
  depends_on = [drover_machine_deployment.web]
}

output "available" { value = data.drover_machine_deployment.web.status.availableReplicas }
`, f.Namespace, cmp.Or(small.ClusterRef.Name, "default"), kit.OldVersion)}
	s.write()
	must(t, tf.Init(t.Context()))
	md := &machinev1alpha1.MachineDeployment{}
	get := func(t *testing.T) *machinev1alpha1.MachineDeployment {
		t.Helper()
		must(t, f.Client.Get(t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: "web"}, md))
		return md
	}
	stepOf := func(name string, run func(t *testing.T, s *stack)) {
		step(t, name, func(t *testing.T) {
			here := *s
			here.t = t
			run(t, &here)
			s.text = here.text
		})
	}

	stepOf("AnApplyWaitsUntilAllMachinesAreAvailable", func(t *testing.T, s *stack) {
		s.applied()
		if md := get(t); md.Status.AvailableReplicas != 2 || md.Labels["team"] != "red" {
			t.Errorf("%d Machines are available, labels %v", md.Status.AvailableReplicas, md.Labels)
		}
		out, err := tf.Output(t.Context())
		must(t, err)
		if got := string(out["available"].Value); got != "2" {
			t.Errorf("the data source has %s available", got)
		}
	})
	stepOf("AChangeOfTheTemplateRolls", func(t *testing.T, s *stack) {
		s.write(kit.OldVersion, kit.NewVersion)
		s.applied()
		if md := get(t); md.Status.UpdatedReplicas != 2 || md.Status.Replicas != 2 {
			t.Errorf("%d of %d Machines are updated", md.Status.UpdatedReplicas, md.Status.Replicas)
		}
	})
	stepOf("DriftIsSeenAndMended", func(t *testing.T, s *stack) {
		_, err := f.Kubectl(t, "scale", "-n", f.Namespace, "machinedeployment/web", "--replicas=3")
		must(t, err)
		if differs, err := tf.Plan(t.Context()); err != nil || !differs {
			t.Errorf("the plan differs: %t, %v", differs, err)
		}
		s.applied()
		if md := get(t); md.Spec.Replicas != 2 {
			t.Errorf("%d replicas", md.Spec.Replicas)
		}
	})
	stepOf("AnotherClassTakesThePlaceOfTheOneBefore", func(t *testing.T, s *stack) {
		s.write("tf-small", "tf-medium", `size = "small"`, `size = "medium"`)
		s.applied()
		err := f.Client.Get(t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: "tf-small"}, &machinev1alpha1.MachineClass{})
		if !kerrors.IsNotFound(err) {
			t.Errorf("the old class: %v", err)
		}
	})
	stepOf("AFieldThatThereIsNotIsRefusedByThePlan", func(t *testing.T, s *stack) {
		good := s.text
		s.write("maxUnavailable = 0", "maxUnavaliable = 0")
		_, err := tf.Plan(t.Context())
		isRefused(t, err, "MachineDeployment "+f.Namespace+"/web", "maxUnavaliable")
		s.text = good
		s.write("replicas = 2", "replicas = -1")
		_, err = tf.Plan(t.Context())
		isRefused(t, err, "spec.replicas", "greater than or equal to 0")
		s.text = good
		s.write()
	})
	stepOf("ARolloutThatCannotBeEndsWithItsReason", func(t *testing.T, s *stack) {
		good := s.text
		s.write("drover_machine_class.small.name", `"nowhere"`)
		isRefused(t, tf.Apply(t.Context()), "is stalled", "ClassNotFound", `"nowhere"`)
		s.text = good
		s.write()
		s.applied()
	})
	stepOf("ReplicasThatTheAutoscalerGetsStayAsTheyAre", func(t *testing.T, s *stack) {
		s.write("    replicas = 2\n", "")
		s.applied()
		if md := get(t); md.Spec.Replicas != 2 {
			t.Errorf("%d replicas after Terraform let go of them, want 2", md.Spec.Replicas)
		}
		_, err := f.Kubectl(t, "scale", "-n", f.Namespace, "machinedeployment/web", "--replicas=1")
		must(t, err)
		f.AwaitDeployment(t, "web")
		s.settled()
	})
	stepOf("AnImportHasNoDiff", func(t *testing.T, s *stack) {
		for address, id := range map[string]string{"drover_machine_deployment.web": f.Namespace + "/web", "drover_machine_class.small": f.Namespace + "/tf-medium"} {
			must(t, tf.StateRm(t.Context(), address))
			must(t, tf.Import(t.Context(), address, id))
		}
		// Only Terraform has the timeouts.
		must(t, tf.Apply(t.Context()))
		s.settled()
		if md := get(t); md.Generation != md.Status.ObservedGeneration {
			t.Errorf("generation %d, observed %d", md.Generation, md.Status.ObservedGeneration)
		}
	})
	stepOf("WhatIsThereIsNotTakenOverUnasked", func(t *testing.T, s *stack) {
		must(t, tf.StateRm(t.Context(), "drover_machine_deployment.web"))
		isRefused(t, tf.Apply(t.Context()), "there is one already", "terraform import ADDRESS "+f.Namespace+"/web")
		must(t, tf.Import(t.Context(), "drover_machine_deployment.web", f.Namespace+"/web"))
	})
	stepOf("ADestroyWaitsForTheLastVM", func(t *testing.T, _ *stack) {
		must(t, tf.Destroy(t.Context()))
		if names := machineNames(t, f); len(names) != 0 {
			t.Errorf("left are %v", names)
		}
		if err := f.Client.Get(context.Background(), client.ObjectKey{Namespace: f.Namespace, Name: "web"}, md); !kerrors.IsNotFound(err) {
			t.Errorf("the MachineDeployment: %v", err)
		}
	})
}

// TestTerraformManagesANodePool has a pool of a team. If the platform team does not offer a
// value, the error has the message of the pool.
func TestTerraformManagesANodePool(t *testing.T) {
	kit.OnlyInLong(t, "TestTerraformManagesAPool")
	t.Parallel()
	f := plane.NewFleet(t)
	offerZones(t, f)
	tf, dir := terraformcli.Start(t, tfdrover.Address)
	s := &stack{t: t, fleet: f, tf: tf, file: filepath.Join(dir, "main.tf"), text: ofProvider() + fmt.Sprintf(`
resource "drover_node_pool" "web" {
  namespace = %[1]q
  name      = "web"
  spec = {
    class      = "small"
    size       = 3
    crossplane = { compositionRef = { name = %[1]q } }
  }
  timeouts = { create = "1h", update = "1h", delete = "1h" }
}
`, f.Namespace)}
	s.write()
	must(t, tf.Init(t.Context()))
	pool := &machinev1alpha1.NodePool{}
	available := func(want int32) {
		t.Helper()
		must(t, f.Client.Get(t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: "web"}, pool))
		if got := pool.Status.AvailableReplicas; got != want {
			t.Errorf("%d Nodes are available, want %d", got, want)
		}
	}
	s.applied()
	available(3)
	s.write("size       = 3", "size       = 4")
	s.applied()
	available(4)
	good := s.text
	s.write(`"small"`, `"gold"`)
	isRefused(t, tf.Apply(t.Context()), "is stalled", `"gold"`)
	s.text = good
	s.write()
	s.applied()
	must(t, tf.StateRm(t.Context(), "drover_node_pool.web"))
	must(t, tf.Import(t.Context(), "drover_node_pool.web", f.Namespace+"/web"))
	must(t, tf.Apply(t.Context()))
	s.settled()
	must(t, tf.Destroy(t.Context()))
	if names := machineNames(t, f); len(names) != 0 {
		t.Errorf("left are %v", names)
	}
}
