package diagnosis_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/render"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

var update = flag.Bool("update", false, "write the golden files anew")

// width of the golden screens.
const width = 100

// read a view that was recorded by TestKubectlDroverNamesCauseAndCure -record-views.
func read(t *testing.T, file string) *view.View {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v := &view.View{}
	if err := yaml.UnmarshalStrict(b, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// ofDeployment are the faults whose oldest Machine is sound: only new ones need the class, and annotations are of one object.
var ofDeployment = map[string]bool{"ClassDeleted": true, "PauseMisspelt": true}

// TestEachFaultIsNamedWithItsCure renders status, tree and why of each recorded fault.
func TestEachFaultIsNamedWithItsCure(t *testing.T) {
	cases := map[string]struct {
		reason string
		texts  []string
		state  diagnosis.State
	}{
		"Quota":                 {"the quota of the cloud is used up", []string{"QuotaExceeded", "Raise the quota at the cloud"}, diagnosis.InProgress},
		"WrongImage":            {"the class names an image that the cloud does not have", []string{"InvalidRequest", "ubuntu-99.04", "Create a class with correct spec.forProvider"}, diagnosis.NeedsUser},
		"UnknownField":          {"the class has a field that the VM resource does not have", []string{"ForProviderInvalid", "forProvider.flavour", "Create a class with the correct fields and name it in classRef: a class is immutable"}, diagnosis.NeedsUser},
		"MissingClass":          {"the class does not exist", []string{"ClassNotFound", "absent", "Create the class, or name another one"}, diagnosis.NeedsUser},
		"MissingCredentials":    {"the Secret with the kubeconfig does not exist", []string{"CredentialsMissing", "absent", "Create the Secret that spec.credentials names"}, diagnosis.NeedsUser},
		"BlockedBudget":         {"a budget lets no pod go from a Machine that is deleted", []string{"PodDisruptionBudget", "maxUnavailable is 0", "drover.dev/force-drain"}, diagnosis.NeedsUser},
		"EvictionRefused":       {"a webhook of the target cluster refuses evictions", []string{"EvictionRefused", "evictions.example.org", "Correct what refuses the evictions in the target cluster"}, diagnosis.NeedsUser},
		"BlockedParent":         {"a budget lets no pod go from a Machine of a deployment that is deleted", []string{"PodDisruptionBudget", "drover.dev/force-drain"}, diagnosis.NeedsUser},
		"KubeletNeverStarts":    {"the VM boots and no kubelet starts", []string{"JoinTimeout", "last milestone: VMRunning", "Read the console of the VM"}, diagnosis.NeedsUser},
		"NodeWithoutProviderID": {"a Node of the right name proves nothing", []string{"NodeUnproven", "cluster.drover.dev/join-token"}, diagnosis.NeedsUser},
		"TooManyUnhealthy":      {"more Machines are unhealthy than may be", []string{"TooManyUnhealthy", "maxUnhealthy"}, diagnosis.NeedsUser},
		"MissingCluster":        {"the configuration of the target cluster does not exist", []string{"ClusterNotFound", `there is no ClusterProviderConfig "absent"`, "Create the configuration, or name another one"}, diagnosis.NeedsUser},
		"MissingConfiguration":  {"the class names a configuration of the cloud that does not exist", []string{"ProviderConfigNotFound", "absent", "Create it, or name another one in a class of its own: a class is immutable"}, diagnosis.NeedsUser},
		"NodeDeleted":           {"a user deleted the Node", []string{"NodeDeleted", "is gone from the target cluster", "Find out which client deleted the Node"}, diagnosis.NeedsUser},
		"FreezeMisspelt":        {"the label that freezes has another value", []string{"FreezeLabelInvalid", `"True" must be "true" or "false"`, "Set the label to"}, diagnosis.NeedsUser},
		"FailedBehindAnother":   {"a Failed Machine waits until another one has started", []string{"WaitingForMachines", "The replacement waits: WaitingForMachines", "kubectl delete ma/", "raise maxInFlight"}, diagnosis.InProgress},
		"AnswerLost":            {"the answer to the creation of a VM is lost", []string{"CreateResultUnknown", "it is unknown whether the VM exists", "An OrphanCollector reports a VM that was left"}, diagnosis.InProgress},
		"Outage":                {"the API of the cloud is not available", []string{"Transient", "maintenance"}, diagnosis.InProgress},
		"NoFunction":            {"the Composition has a step of a Function that is not installed", []string{`the Function "absent-function" is not installed`, "install the Function"}, diagnosis.NeedsUser},
		"FunctionNotPulled":     {"the Composition has a step of a Function whose package cannot be pulled", []string{"is not installed", "install the Function"}, diagnosis.NeedsUser},
		"RightMissing":          {"the Composition creates a kind that provider-drover may not read", []string{"may provider-drover list and watch Host.hosts.example.org?", "grant the right"}, diagnosis.NeedsUser},
		"OtherCA":               {"the kubeconfig has the CA of another cluster", []string{"CertificateNotTrusted", "Correct certificate-authority-data and the server in the kubeconfig"}, diagnosis.NeedsUser},
		"SwitchMisspelt":        {"annotations have True and yes instead of true", []string{"AnnotationInvalid", `crossplane.io/paused: "True" of the Machine must be true or false`}, diagnosis.NeedsUser},
		"UserDataMissing":       {"the Secret with the user data of the class does not exist", []string{"UserDataNotFound", `Secret "own": not found`, "Create the Secret, or add the key"}, diagnosis.NeedsUser},
		"VMPaused":              {"the VM resource is paused while its Machine is deleted", []string{"DeletionPaused", "its annotation crossplane.io/paused keeps its provider from deleting it", "Remove the annotation crossplane.io/paused of the resource"}, diagnosis.NeedsUser},
		"NoRoom":                {"the cloud has no room for the VM", []string{"CapacityExhausted", "use another failure domain or another class"}, diagnosis.InProgress},
		"Denied":                {"the account may not create VMs", []string{"PermissionDenied", "Renew the credentials, or grant the right that the message names"}, diagnosis.NeedsUser},
		"Throttled":             {"the cloud limits the rate of requests", []string{"Throttled: not now"}, diagnosis.InProgress},
		"ExpiredToken":          {"the token of the kubeconfig is not accepted", []string{"Unauthorized", "Renew the credentials"}, diagnosis.NeedsUser},
		"NoKubeconfig":          {"the Secret has a text that is no kubeconfig", []string{"CredentialsInvalid", "is not a kubeconfig", "Correct the kubeconfig"}, diagnosis.NeedsUser},
		"ClassDeleted":          {"the class of a deployment is deleted before it is scaled up", []string{"ClassNotFound", `there is no MachineClass "small"`, "Create the class, or name another one"}, diagnosis.NeedsUser},
		"WrongExpression":       {"an expression of the Composition does not compile", []string{"BindingInvalid", "line 1, column 22", "Correct the expression that the message names"}, diagnosis.NeedsUser},
		"DiskReadOnly":          {"a detector reports a read-only file system", []string{"NodeUnhealthy", "ReadonlyFilesystem is True", "Repair the Node, or let the Machine be replaced"}, diagnosis.InProgress},
		"ClockAhead":            {"the clock of a Node that reports a problem is three hours ahead", []string{"NodeUnhealthy", "the Machine is Failed at 2026-11-28T13:16:49Z"}, diagnosis.InProgress},
		"FinalizerOfAnother":    {"a finalizer of another controller holds the VM resource", []string{"WaitingForFinalizers", "example.org/audit", "Let the controller that owns the finalizer remove it"}, diagnosis.NeedsUser},
		"HookStays":             {"a hook holds a deletion", []string{"WaitingForHooks", "hooks: backup", "pre-drain.hook.machine.drover.dev/backup-"}, diagnosis.InProgress},
		"DeletionPaused":        {"a Machine is paused and deleted", []string{"DeletionPaused", "crossplane.io/paused-"}, diagnosis.NeedsUser},
		"PauseMisspelt":         {"annotations of the MachineDeployment mean nothing", []string{"AnnotationInvalid", `crossplane.io/paused: "True" of the MachineDeployment must be true or false`, "drover.dev/force-drain of the MachineDeployment has no effect"}, diagnosis.NeedsUser},
		"VMFailed":              {"the cloud accepted the creation of the VM, which failed", []string{"VMFailed", "the host of the VM died", "Read the message and the console of the VM"}, diagnosis.NeedsUser},
		"VersionSkewed":         {"the kubelet is newer than the API server", []string{"VersionSkew", "the kubelet is newer than the API server", "Change spec.version, or upgrade the API server"}, diagnosis.NeedsUser},
		"VolumeStays":           {"a volume is not detached from the Node", []string{"DetachingVolumes", "-data (Detaching)", "look at its VolumeAttachment"}, diagnosis.InProgress},
		"TargetDown":            {"the target cluster does not answer", []string{"Unreachable", "Check the network and the API server"}, diagnosis.NeedsUser},
	}
	files, err := filepath.Glob("testdata/views/*.yaml")
	if err != nil || len(files) != len(cases) {
		t.Fatalf("%d views, want %d, %v", len(files), len(cases), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			tc, ok := cases[name]
			if !ok {
				t.Fatal("no case for this view")
			}
			v := read(t, file)
			now := v.Time.Time
			screen := render.Plain(width, now)
			r, err := diagnosis.Status(v, nil, now)
			if err != nil {
				t.Fatal(err)
			}
			if r.State != tc.state {
				t.Errorf("%s: state %s, want %s", tc.reason, r.State, tc.state)
			}
			if r.State == diagnosis.Complete && len(r.Groups[0].Findings) > 0 {
				t.Errorf("complete, with the findings %+v", r.Groups[0].Findings)
			}
			status := screen.Status(r)
			names(t, tc.reason, "status", status, tc.texts)
			out := "$ kubectl drover status\n" + status
			branches, err := diagnosis.Tree(v, nil, now)
			if err != nil {
				t.Fatal(err)
			}
			out += "\n$ kubectl drover tree\n" + screen.Tree(branches)
			for _, ref := range asked(v) {
				a, err := diagnosis.Why(v, ref, now)
				if err != nil {
					t.Fatal(err)
				}
				why := screen.Why(a)
				if !ofDeployment[name] || ref.Kind != view.Machine {
					names(t, tc.reason, "why "+ref.String(), why, tc.texts)
				}
				out += "\n$ kubectl drover why " + ref.String() + "\n" + why
			}
			golden(t, "testdata/"+name+".txt", out)
		})
	}
}

// asked are the MachineDeployment, and its oldest Machine.
func asked(v *view.View) []view.Ref {
	var out []view.Ref
	for _, d := range v.Deployments {
		out = append(out, view.Ref{Kind: view.MachineDeployment, Namespace: d.Namespace, Name: d.Name})
	}
	if len(v.Machines) > 0 {
		m := slices.MinFunc(v.Machines, func(a, b machinev1alpha1.Machine) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
		out = append(out, view.Ref{Kind: view.Machine, Namespace: m.Namespace, Name: m.Name})
	}
	return out
}

func names(t *testing.T, reason, command, out string, texts []string) {
	t.Helper()
	flat := strings.Join(strings.Fields(out), " ")
	for _, text := range texts {
		if !strings.Contains(flat, text) {
			t.Errorf("%s: %s does not name %q:\n%s", reason, command, text, out)
		}
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if it shall, run: go test ./internal/kubectl/diagnosis -update\ngot:\n%s", file, got)
	}
}
