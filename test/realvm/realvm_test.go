package realvm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// creationTimeout of the machines is longer than any of them takes: 60 s of CPU time without KVM, on a
// computer that runs other tests.
const creationTimeout = 2 * time.Hour

// TestARealDebianJoinsAndRunsAPod boots the user data that Drover renders. The power of the machine is cut right after
// cloud-init wrote the files of the user data, which may be empty after that. The drain ends its pod. The short form has only
// this test of real machines.
func TestARealDebianJoinsAndRunsAPod(t *testing.T) {
	t.Parallel()
	f := plane.NewRealFleet(t, localcloud.ImageDebian12Real)
	startReal(t, f, f.RealClass("real", localcloud.ImageDebian12Real, "", nil))
	awaitConsole(t, f, "running 'modules:config'")
	must(t, f.Cloud.RebootVM(t.Context(), realVM(t, f).ID))
	node := awaitRealNode(t, f)
	if info := node.Status.NodeInfo; !strings.HasPrefix(info.ContainerRuntimeVersion, "containerd://1.") || !strings.HasPrefix(info.OSImage, "Debian GNU/Linux 12") {
		t.Errorf("the Node is not the real Debian: %+v", info)
	}
	runAPod(t, f, node)
	endReal(t, f)
}

// TestAMachineWithIgnitionAndAReadOnlyUsrJoinsAndRunsAPod gives Flatcar's user data to an image
// that starts like Flatcar: Ignition reads it in the initramfs, and /usr is read-only. The power
// of the machine is cut while the stages of Ignition run, and once more right after the last
// stage, before the system on the disk starts.
func TestAMachineWithIgnitionAndAReadOnlyUsrJoinsAndRunsAPod(t *testing.T) {
	kit.OnlyInLong(t, "TestARealDebianJoinsAndRunsAPod")
	t.Parallel()
	f := plane.NewRealFleet(t, localcloud.ImageFlatcarLike)
	plugins := map[string]string{"cniURL": "http://" + localcloud.GatewayAddress + "/plugins"}
	startReal(t, f, f.RealClass("real", localcloud.ImageFlatcarLike, "flatcar-v1", plugins))
	awaitConsole(t, f, stageDone)
	must(t, f.Cloud.RebootVM(t.Context(), realVM(t, f).ID))
	awaitIgnition(t, f)
	must(t, f.Cloud.RebootVM(t.Context(), realVM(t, f).ID))
	awaitIgnition(t, f)
	node := awaitRealNode(t, f)
	if runtime := node.Status.NodeInfo.ContainerRuntimeVersion; !strings.HasPrefix(runtime, "containerd://2.") {
		t.Errorf("the Node runs %s", runtime)
	}
	runAPod(t, f, node)
	endReal(t, f)
}

// Each stage of Ignition ends with a line on the console.
const (
	stages    = 6
	stageDone = "Ignition finished successfully"
	// powerCut is the line that the local cloud writes to the console when it cuts the power.
	powerCut = " rebooted\n"
)

// awaitIgnition waits until Ignition has written its last file once more since the power was last
// cut. It returns before the system on the disk has started, which takes longer than to read the
// console. The console shows only the last 64 KiB, which may be less than two boots.
func awaitIgnition(t *testing.T, f kit.Fleet) {
	t.Helper()
	patience.Eventually(t, func(context.Context) string {
		text := console(t, f)
		boot := text[strings.LastIndex(text, powerCut)+1:]
		if done := strings.Count(boot, stageDone); done < stages {
			return fmt.Sprintf("%d of %d stages of Ignition are done since the power was cut", done, stages)
		}
		return ""
	})
}

// TestAMachineOfAUsersProfileJoinsAfterPowerCutsHalfWay has a profile that is a user's object.
// The power of its machine is cut seconds after cloud-init wrote the files, which are empty after
// that. It is cut again in the middle of the second step, where the machine must continue.
func TestAMachineOfAUsersProfileJoinsAfterPowerCutsHalfWay(t *testing.T) {
	kit.OnlyInLong(t, "TestARealDebianJoinsAndRunsAPod")
	t.Parallel()
	f := plane.NewRealFleet(t, localcloud.ImageDebian12Real)
	f.ApplyFile(t, "testdata/acme-debian-12-v1.yaml", profileNamed("acme-debian-12-v1"))
	startReal(t, f, f.RealClass("real", localcloud.ImageDebian12Real, "acme-debian-12-v1", map[string]string{"greeting": "good morning"}))
	awaitConsole(t, f, "running 'modules:config'")
	if err := f.Cloud.RebootVM(t.Context(), realVM(t, f).ID); err != nil {
		t.Fatal(err)
	}
	awaitConsole(t, f, "acme: this step never ends")

	if err := f.Cloud.RebootVM(t.Context(), realVM(t, f).ID); err != nil {
		t.Fatal(err)
	}
	node := awaitRealNode(t, f)

	text := console(t, f)
	if n := strings.Count(text, "acme: good morning"); n != 1 {
		t.Errorf("a step that had succeeded ran %d times", n)
	}
	if n := strings.Count(text, "drover-bootstrap: step settle: started"); n != 2 {
		t.Errorf("the step that was cut off was started %d times, want 2", n)
	}
	runAPod(t, f, node)
	endReal(t, f)
}

// TestAMachineJoinsWhoseMirrorIsAwayForAMinute stops the mirror until a minute after the first
// failed download.
func TestAMachineJoinsWhoseMirrorIsAwayForAMinute(t *testing.T) {
	kit.OnlyInLong(t, "TestARealDebianJoinsAndRunsAPod")
	t.Parallel()
	f := plane.NewRealFleet(t, localcloud.ImageDebian12Real)
	fault, err := f.Cloud.CreateFault(t.Context(), localcloud.Fault{
		Kind: localcloud.FaultMirrorFails, Match: localcloud.FaultMatch{Tags: map[string]string{machinev1alpha1.TagNamespace: f.Namespace}},
	})
	if err != nil {
		t.Fatal(err)
	}
	startReal(t, f, f.RealClass("real", localcloud.ImageDebian12Real, "", nil))
	awaitConsole(t, f, "drover-bootstrap: step install-kubelet: failed (exit 22), trying again in 5s")
	vm := realVM(t, f)

	patience.Throughout(t, patience.After(time.Minute), func(ctx context.Context) string {
		if nodes, err := f.Nodes(ctx); err != nil || len(nodes) > 0 {
			return fmt.Sprintf("without a mirror there are %d Nodes: %v", len(nodes), err)
		}
		return ""
	})
	if err := f.Cloud.DeleteFault(t.Context(), fault.ID); err != nil {
		t.Fatal(err)
	}
	node := awaitRealNode(t, f)
	if node.Spec.ProviderID != vm.ProviderID {
		t.Errorf("another VM joined: %s, not %s", node.Spec.ProviderID, vm.ProviderID)
	}
	runAPod(t, f, node)
	endReal(t, f)
}

// TestBadUserDataIsExplainedWithinTwoMinutes has a profile with a step that never succeeds. The
// Machine must report the step and its output within two minutes of the failure.
func TestBadUserDataIsExplainedWithinTwoMinutes(t *testing.T) {
	kit.OnlyInLong(t, "TestARealDebianJoinsAndRunsAPod")
	t.Parallel()
	f := plane.NewRealFleet(t, localcloud.ImageDebian12Real)
	f.ApplyFile(t, "testdata/acme-broken-v1.yaml", profileNamed("acme-broken-v1"))
	startReal(t, f, f.RealClass("real", localcloud.ImageDebian12Real, "acme-broken-v1", nil))
	awaitConsole(t, f, "drover-bootstrap: step disks: failed (exit 7), trying again in 5s")

	awaitExplanation(t, f, machinev1alpha1.ReasonBootstrapFailing, "bootstrap step disks failed with exit code 7 and is tried again: ", "acme: there is no disk /dev/nvme7n1")
	if p := realMachine(t, f).Status.Join.Bootstrap; p == nil || p.Step != "disks" || p.State != machinev1alpha1.BootstrapFailed || p.ExitCode == nil || *p.ExitCode != 7 {
		t.Errorf("status.join.bootstrap %+v", p)
	}
	endReal(t, f)
}

// TestUserDataThatCloudInitRefusesIsExplainedWithinTwoMinutes has a user's own user data that is
// not valid YAML. Its VM runs none of it.
func TestUserDataThatCloudInitRefusesIsExplainedWithinTwoMinutes(t *testing.T) {
	kit.OnlyInLong(t, "the tests of consoles in internal/console and internal/plan/machine")
	t.Parallel()
	f := plane.NewRealFleet(t, localcloud.ImageDebian12Real)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "own", Labels: map[string]string{machinev1alpha1.LabelUserData: "true"}},
		StringData: map[string]string{"userData": "#cloud-config\nruncmd: [\ntoken: <<BOOTSTRAP_TOKEN>>: <<MACHINE_NAME>>\n"},
	}
	f.Create(t, secret)
	class := f.Class("real", "local", fmt.Sprintf(`{"image":%q,"size":"small"}`, localcloud.ImageDebian12Real))
	class.Spec.UserData = &machinev1alpha1.UserData{SecretRef: &machinev1alpha1.UserDataSecretReference{Name: "own"}}
	startReal(t, f, class)
	awaitConsole(t, f, "Failed loading yaml blob")

	awaitExplanation(t, f, machinev1alpha1.ReasonUserDataRefused, "the operating system refused its user data: ")
	if p := realMachine(t, f).Status.Join.Bootstrap; p != nil {
		t.Errorf("user data without steps has reached %+v", p)
	}
	must(t, f.Client.Delete(t.Context(), secret))
	endReal(t, f)
}

// TestUserDataThatIgnitionRefusesIsExplainedWithinTwoMinutes has a user's own user data that is
// valid JSON but refused by Ignition: its file has no absolute path.
func TestUserDataThatIgnitionRefusesIsExplainedWithinTwoMinutes(t *testing.T) {
	kit.OnlyInLong(t, "the tests of consoles in internal/console and internal/plan/machine")
	t.Parallel()
	f := plane.NewRealFleet(t, localcloud.ImageFlatcarLike)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "own", Labels: map[string]string{machinev1alpha1.LabelUserData: "true"}},
		StringData: map[string]string{
			"format": machinev1alpha1.UserDataFormatIgnition,
			"value":  `{"ignition": {"version": "3.3.0"}, "storage": {"files": [{"path": "etc/<<MACHINE_NAME>>", "contents": {"source": "data:,<<BOOTSTRAP_TOKEN>>"}}]}}`,
		},
	}
	f.Create(t, secret)
	class := f.Class("real", "local", fmt.Sprintf(`{"image":%q,"size":"small"}`, localcloud.ImageFlatcarLike))
	class.Spec.UserData = &machinev1alpha1.UserData{SecretRef: &machinev1alpha1.UserDataSecretReference{Name: "own"}}
	class.Spec.OperatingSystem.Provisioning = machinev1alpha1.Ignition
	f.Create(t, class)
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "refused"}, Spec: f.MachineSpec(kit.NewVersion)}
	m.Spec.ClassRef.Name = class.Name
	f.Create(t, m)
	awaitConsole(t, f, "Ignition failed")

	// The image powers off in this case.
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(m.Status.Conditions, machinev1alpha1.ConditionNodeReady)
		if c == nil || c.Reason != machinev1alpha1.ReasonUserDataRefused || m.Status.FailureReason != machinev1alpha1.FailureVMFailed ||
			!strings.Contains(m.Status.FailureMessage, "the operating system refused its user data: ") || !strings.Contains(m.Status.FailureMessage, "Ignition failed") {
			return fmt.Sprintf("the Machine is %s: %s: %s, with the condition %+v", m.Status.Phase, m.Status.FailureReason, m.Status.FailureMessage, c)
		}
		return ""
	}, f.Describe)
	t.Log(m.Status.FailureMessage)
	must(t, f.Client.Delete(t.Context(), m))
	must(t, f.Client.Delete(t.Context(), secret))
	f.AwaitNothing(t)
}

// awaitExplanation waits until the only Machine of a fleet reports why it does not join.
func awaitExplanation(t *testing.T, f kit.Fleet, reason string, texts ...string) {
	t.Helper()
	patience.Eventually(t, func(context.Context) string {
		m := realMachine(t, f)
		c := meta.FindStatusCondition(m.Status.Conditions, machinev1alpha1.ConditionNodeReady)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != reason || slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(c.Message, text) }) {
			return fmt.Sprintf("the Machine is %s, with the condition %+v and status.join %+v", m.Status.Phase, c, m.Status.Join)
		}
		return ""
	}, f.Describe)
}

// realMachine returns the only Machine of a fleet.
func realMachine(t *testing.T, f kit.Fleet) machinev1alpha1.Machine {
	t.Helper()
	machines, err := f.Machines(t.Context())
	if err != nil || len(machines) != 1 {
		t.Fatalf("%d Machines: %v", len(machines), err)
	}
	return machines[0]
}

// startReal creates a deployment of one real machine.
func startReal(t *testing.T, f kit.Fleet, class *machinev1alpha1.MachineClass) {
	t.Helper()
	f.Create(t, class)
	f.Create(t, realDeployment(f, class))
	t.Cleanup(func() {
		if t.Failed() {
			logConsoles(t, f)
		}
	})
}

// realDeployment returns a deployment of one real machine.
func realDeployment(f kit.Fleet, class *machinev1alpha1.MachineClass) *machinev1alpha1.MachineDeployment {
	md := f.Deployment("real", 1, 1, 0)
	md.Spec.Template.Spec.ClassRef.Name = class.Name
	md.Spec.Template.Spec.Version = kit.NewVersion
	// A slow machine must not be replaced by another slow one.
	md.Spec.Template.Spec.CreationTimeout = metav1.Duration{Duration: creationTimeout}
	// The pods of other tests have images that do not exist, so keep them away by a taint.
	md.Spec.Template.Spec.Taints = append(md.Spec.Template.Spec.Taints, dedicated(f))
	return md
}

// awaitRealNode waits until the machine runs, and returns its Node.
func awaitRealNode(t *testing.T, f kit.Fleet) corev1.Node {
	t.Helper()
	f.AwaitDeployment(t, "real")
	nodes, err := f.Nodes(t.Context())
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%d Nodes: %v", len(nodes), err)
	}
	node, vm := nodes[0], realVM(t, f)
	if node.Spec.ProviderID != vm.ProviderID {
		t.Errorf("the Node has provider ID %q, its VM %q", node.Spec.ProviderID, vm.ProviderID)
	}
	if v := node.Status.NodeInfo.KubeletVersion; v != kit.NewVersion {
		t.Errorf("the Node has kubelet %s", v)
	}
	return node
}

// runAPod on the machine, with an address of its bridge.
func runAPod(t *testing.T, f kit.Fleet, node corev1.Node) {
	t.Helper()
	awaitPod(t, f, realPod(f, node.Name))
}

// awaitPod creates a pod, and waits until it runs with an address of its machine's bridge.
func awaitPod(t *testing.T, f kit.Fleet, pod *corev1.Pod) {
	t.Helper()
	if err := f.Cluster.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err.Error()
		}
		if pod.Status.Phase != corev1.PodRunning || len(pod.Status.ContainerStatuses) != 1 || pod.Status.ContainerStatuses[0].ContainerID == "" {
			return fmt.Sprintf("the pod is %s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		return ""
	}, f.Describe)
	if !strings.HasPrefix(pod.Status.PodIP, "10.88.") {
		t.Errorf("the pod has address %q, which is not of the machine's bridge", pod.Status.PodIP)
	}
}

// endReal deletes the machine. The drain evicts its pod, and a real kubelet ends it.
func endReal(t *testing.T, f kit.Fleet) {
	t.Helper()
	f.DeleteDeployment(t, "real")
}

// realVM returns the only VM of a fleet.
func realVM(t *testing.T, f kit.Fleet) localcloud.VM {
	t.Helper()
	vms, err := f.VMs(t.Context())
	if err != nil || len(vms) != 1 {
		t.Fatalf("%d VMs: %v", len(vms), err)
	}
	return vms[0]
}

// console of the only VM of a fleet.
func console(t *testing.T, f kit.Fleet) string {
	t.Helper()
	text, err := f.Cloud.Console(t.Context(), realVM(t, f).ID)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// awaitConsole waits until the only VM of a fleet has written a text to its console.
func awaitConsole(t *testing.T, f kit.Fleet, text string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		vms, err := f.VMs(ctx)
		if err != nil || len(vms) != 1 {
			return fmt.Sprintf("%d VMs: %v", len(vms), err)
		}
		got, err := f.Cloud.Console(ctx, vms[0].ID)
		if err != nil || !strings.Contains(got, text) {
			return fmt.Sprintf("the console does not show %q: %v", text, err)
		}
		return ""
	}, f.Describe)
}

func profileNamed(name string) *machinev1alpha1.OperatingSystemProfile {
	return &machinev1alpha1.OperatingSystemProfile{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func dedicated(f kit.Fleet) machinev1alpha1.Taint {
	return machinev1alpha1.Taint{Key: "example.org/dedicated", Value: f.Namespace, Effect: "NoSchedule"}
}

// realPod runs the image that the local cloud's mirror has.
func realPod(f kit.Fleet, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "real"}}
	p.Spec.NodeName = node
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "registry.k8s.io/pause:3.10"}}
	return p
}

// logConsoles logs the consoles of a fleet's VMs, which show why a machine does not join.
func logConsoles(t *testing.T, f kit.Fleet) {
	ctx := context.Background()
	vms, err := f.VMs(ctx)
	if err != nil {
		t.Log(err)
		return
	}
	for _, vm := range vms {
		text, err := f.Cloud.Console(ctx, vm.ID)
		t.Logf("console of VM %s, which is %s (%v): %v\n%s", vm.ID, vm.State, vm.Error, err, tail(text, 60))
	}
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
