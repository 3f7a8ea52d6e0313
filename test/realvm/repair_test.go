package realvm

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestAMachineIsRepairedByARebootOrReplaced runs node-problem-detector, with its own configuration, on a real machine. A message
// in the kernel's log sets the condition KernelDeadlock, for which the health reboots the Machine: its pods are evicted, the
// machine boots again, the condition is gone, and the Machine runs pods as before. Then its kubelet breaks for good: two
// reboots do not help, and it is replaced.
//
// The machine has a kernel of its own, so that its log is no other's. The message gets there by /dev/kmsg, because no deadlock
// of a kernel can be had on demand.
func TestAMachineIsRepairedByARebootOrReplaced(t *testing.T) {
	kit.OnlyInLong(t, "TestAMachineIsRebooted in test/e2e, TestRepairs in internal/plan/simulator")
	t.Parallel()
	f := plane.NewRealFleet(t, localcloud.ImageDebian12Real)
	orders := newOrders(t)
	class := f.RealClass("real", localcloud.ImageDebian12Real, "", nil)
	orders.apply(&class.Spec.OperatingSystem)
	f.Create(t, class)
	md := realDeployment(f, class)
	health := &md.Spec.Template.Spec.Health
	health.Profiles = []string{"node-problem-detector-v1"}
	health.Conditions = []machinev1alpha1.HealthCondition{
		// The action is that of the profile.
		{Type: "KernelDeadlock", Status: string(corev1.ConditionTrue), Timeout: &metav1.Duration{Duration: time.Second}},
		{Type: string(corev1.NodeReady), Status: string(corev1.ConditionUnknown), Timeout: &metav1.Duration{Duration: time.Minute}, Action: machinev1alpha1.HealthActionReboot},
	}
	// The timeout is shorter than any boot. One reboot helps, and two do not.
	health.Reboot = &machinev1alpha1.HealthReboot{Limit: 3, Timeout: metav1.Duration{Duration: time.Minute}}
	f.Create(t, md)
	t.Cleanup(func() {
		if t.Failed() {
			logConsoles(t, f)
		}
	})
	node, machine, vm := awaitRealNode(t, f), realMachine(t, f), realVM(t, f)
	makePods(t, f)
	awaitRunningPod(t, f, node.Name)
	awaitCondition(t, f, node.Name, "KernelDeadlock", corev1.ConditionFalse)

	orders.give(node.Name, "deadlock")
	awaitRepaired(t, f, machine.Name)
	after := nodeNamed(t, f, node.Name)
	if was, is := node.Status.NodeInfo.BootID, after.Status.NodeInfo.BootID; after.UID != node.UID || was == is || after.Spec.Unschedulable {
		t.Errorf("Node %s with boot ID %s became %s with boot ID %s, unschedulable: %t", node.UID, was, after.UID, is, after.Spec.Unschedulable)
	}
	awaitCondition(t, f, node.Name, "KernelDeadlock", corev1.ConditionFalse)
	awaitRunningPod(t, f, node.Name)
	if now := realMachine(t, f); now.UID != machine.UID || realVM(t, f).ID != vm.ID {
		t.Errorf("Machine %s of VM %s was replaced by Machine %s of VM %s", machine.UID, vm.ID, now.UID, realVM(t, f).ID)
	}
	f.AwaitDeployment(t, md.Name)
	awaitShortTimeout(t, f, md.Name)

	deletePods(t, f)
	orders.give(node.Name, "break-kubelet")
	awaitReplaced(t, f, machine.Name)
	f.AwaitDeployment(t, md.Name)
	if now := realMachine(t, f); now.UID == machine.UID || realVM(t, f).ID == vm.ID {
		t.Errorf("Machine %s of VM %s was not replaced", machine.UID, vm.ID)
	}
	endReal(t, f)
}

// orders are what machines shall do. Each machine asks for them, because the host does not reach it.
type orders struct {
	server *httptest.Server

	mu   sync.Mutex
	open map[string]string
}

func newOrders(t *testing.T) *orders {
	t.Helper()
	o := &orders{open: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{node}", func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		fmt.Fprint(w, o.open[r.PathValue("node")])
		delete(o.open, r.PathValue("node"))
	})
	mux.Handle("GET /detector/", http.StripPrefix("/detector/", http.FileServer(http.Dir(kit.RealDetector()))))
	o.server = httptest.NewServer(mux)
	t.Cleanup(o.server.Close)
	return o
}

// give an order to the machine of a Node, which carries it out once.
func (o *orders) give(node, order string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open[node] = order
}

// apply to a class: its machines run node-problem-detector as the user of the kubelet, and carry out orders.
func (o *orders) apply(s *machinev1alpha1.OperatingSystem) {
	url := fmt.Sprintf("http://%s:%d", localcloud.HostAddress, o.server.Listener.Addr().(*net.TCPAddr).Port)
	s.Files = []machinev1alpha1.MachineFile{{Path: "/etc/acme/orders", Mode: "0700", Content: `#!/bin/sh
while sleep 2; do
  case "$(curl -sf --max-time 10 "` + url + `/orders/$(hostname)")" in
  deadlock)
    echo "<3>task docker:4711 blocked for more than 120 seconds." >/dev/kmsg
    ;;
  break-kubelet)
    mkdir -p /etc/systemd/system/kubelet.service.d
    printf '[Service]\nExecStartPre=/bin/false\n' >/etc/systemd/system/kubelet.service.d/99-broken.conf
    sync
    systemctl daemon-reload
    systemctl restart kubelet.service
    ;;
  esac
done
`}}
	s.Units = []machinev1alpha1.MachineUnit{
		{Name: "acme-orders.service", Enabled: true, Content: "[Service]\nExecStart=/etc/acme/orders\nRestart=always\n[Install]\nWantedBy=multi-user.target\n"},
		{Name: "node-problem-detector.service", Enabled: true, Content: `[Unit]
ConditionPathExists=/opt/node-problem-detector/kernel-monitor.json
StartLimitIntervalSec=0
[Service]
ExecStart=/opt/node-problem-detector/node-problem-detector --config.system-log-monitor=/opt/node-problem-detector/kernel-monitor.json --hostname-override=%H --apiserver-override=?inClusterConfig=false&auth=/etc/kubernetes/kubelet.conf --port=0 --prometheus-port=0
Restart=always
RestartSec=2
[Install]
WantedBy=multi-user.target
`},
	}
	s.StepsAfterJoin = []machinev1alpha1.MachineStep{{Name: "acme-detector", Script: `#!/bin/sh
set -eu
mkdir -p /opt/node-problem-detector
cd /opt/node-problem-detector
curl -sSf -o node-problem-detector "` + url + `/detector/node-problem-detector"
curl -sSf -o kernel-monitor.json "` + url + `/detector/kernel-monitor.json"
chmod 755 node-problem-detector
systemctl start node-problem-detector.service
`}}
}

// makePods creates a Deployment of one pod, for which only the machines of a fleet have room.
func makePods(t *testing.T, f kit.Fleet) {
	t.Helper()
	labels := map[string]string{"app": "repaired"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "repaired"}}
	d.Spec.Replicas, d.Spec.Selector, d.Spec.Template.Labels = ptr.To[int32](1), &metav1.LabelSelector{MatchLabels: labels}, labels
	taint := dedicated(f)
	d.Spec.Template.Spec = corev1.PodSpec{
		Containers:  []corev1.Container{{Name: "c", Image: "registry.k8s.io/pause:3.10"}},
		Tolerations: []corev1.Toleration{{Key: taint.Key, Value: string(taint.Value), Effect: corev1.TaintEffect(taint.Effect)}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{realMachine(t, f).Status.NodeRef.Name}}},
		}}}}},
	}
	must(t, f.Cluster.Client.Create(t.Context(), d))
}

func deletePods(t *testing.T, f kit.Fleet) {
	t.Helper()
	f.DeleteWorkload(t, "repaired")
}

// awaitRunningPod waits until the only pod that is not being deleted runs on a Node.
func awaitRunningPod(t *testing.T, f kit.Fleet, node string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		l := &corev1.PodList{}
		if err := f.Cluster.Client.List(ctx, l, client.InNamespace(f.Namespace)); err != nil {
			return err.Error()
		}
		pods := slices.DeleteFunc(l.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
		if len(pods) != 1 || pods[0].Spec.NodeName != node || pods[0].Status.Phase != corev1.PodRunning || !slices.ContainsFunc(pods[0].Status.Conditions, isReadyPod) {
			return fmt.Sprintf("%d pods: %+v", len(pods), pods)
		}
		return ""
	}, f.Describe)
}

func isReadyPod(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

func nodeNamed(t *testing.T, f kit.Fleet, name string) *corev1.Node {
	t.Helper()
	n := &corev1.Node{}
	must(t, f.Cluster.Client.Get(t.Context(), client.ObjectKey{Name: name}, n))
	return n
}

// awaitCondition waits for a condition of a Node, which node-problem-detector sets.
func awaitCondition(t *testing.T, f kit.Fleet, node, condition string, status corev1.ConditionStatus) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		n := &corev1.Node{}
		if err := f.Cluster.Client.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
			return err.Error()
		}
		for _, c := range n.Status.Conditions {
			if string(c.Type) == condition && c.Status == status {
				return ""
			}
		}
		return fmt.Sprintf("the Node has not %s %s: %+v", condition, status, n.Status.Conditions)
	}, f.Describe)
}

// awaitRepaired waits until the health of a Machine has rebooted it, for the message in the log of its kernel.
func awaitRepaired(t *testing.T, f kit.Fleet, name string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		m := &machinev1alpha1.Machine{}
		if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: name}, m); err != nil {
			return err.Error()
		}
		r := m.Status.Reboot
		if r == nil || r.State != machinev1alpha1.RebootSucceeded || !strings.Contains(r.ByHealth, "KernelDeadlock is True (DockerHung)") || m.Status.Phase != machinev1alpha1.MachineRunning {
			return fmt.Sprintf("phase %s, reboot %+v", m.Status.Phase, r)
		}
		return ""
	}, f.Describe)
}

// awaitShortTimeout waits until the MachineDeployment reports that the timeout of reboots is shorter than the boot.
func awaitShortTimeout(t *testing.T, f kit.Fleet, name string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		d := &machinev1alpha1.MachineDeployment{}
		if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: name}, d); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(d.Status.Conditions, machinev1alpha1.ConditionHealthValid)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != machinev1alpha1.ReasonRebootTimeoutShort {
			return fmt.Sprintf("HealthValid is %+v", c)
		}
		return ""
	}, f.Describe)
}

// awaitReplaced waits until a Machine is replaced after two reboots that did not help. Each may last as long as a first boot.
func awaitReplaced(t *testing.T, f kit.Fleet, name string) {
	t.Helper()
	for _, reboots := range []int{1, 2} {
		awaitReplacements(t, f, name, machinev1alpha1.ReplacedRebootFailed, reboots)
	}
	awaitReplacements(t, f, name, machinev1alpha1.ReplacedFailed, 1)
}

// awaitReplacements waits until status.replacements lists a Machine with a reason at least as often as given.
func awaitReplacements(t *testing.T, f kit.Fleet, name string, reason machinev1alpha1.ReplacementReason, times int) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		d := &machinev1alpha1.MachineDeployment{}
		if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: "real"}, d); err != nil {
			return err.Error()
		}
		n := 0
		for _, r := range d.Status.Replacements {
			if r.Machine == name && r.Reason == reason {
				n++
			}
		}
		if n < times {
			return fmt.Sprintf("%s is listed %d times for %s, want %d: %+v", name, n, reason, times, d.Status.Replacements)
		}
		return ""
	}, f.Describe)
}
