package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
)

// realPatience is how long a real machine may take: 60 s of CPU without KVM, on a computer that
// runs other tests.
const realPatience = 15 * time.Minute

// TestARealDebianJoinsAndRunsAPod boots the user data that Drover renders: everywhere else, the
// local cloud's simulator reads it.
func TestARealDebianJoinsAndRunsAPod(t *testing.T) {
	t.Parallel()
	f := plane.NewRealFleet(t)
	md := f.Deployment("real", 1, 1, 0)
	md.Spec.Template.Spec.ClassRef.Name = "real"
	md.Spec.Template.Spec.Version = kit.NewVersion
	// The pods of other tests have images that do not exist.
	md.Spec.Template.Spec.Taints = append(md.Spec.Template.Spec.Taints, dedicated(f))
	f.Create(t, md)
	t.Cleanup(func() {
		if t.Failed() {
			logConsoles(t, f)
		}
	})
	f.AwaitDeploymentFor(t, md.Name, realPatience)

	nodes, err := f.Nodes(t.Context())
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%d Nodes: %v", len(nodes), err)
	}
	vms, err := f.VMs(t.Context())
	if err != nil || len(vms) != 1 {
		t.Fatalf("%d VMs: %v", len(vms), err)
	}
	node, vm := nodes[0], vms[0]
	if node.Spec.ProviderID != vm.ProviderID {
		t.Errorf("the Node has provider ID %q, its VM %q", node.Spec.ProviderID, vm.ProviderID)
	}
	if info := node.Status.NodeInfo; info.KubeletVersion != kit.NewVersion || !strings.HasPrefix(info.ContainerRuntimeVersion, "containerd://") || !strings.HasPrefix(info.OSImage, "Debian GNU/Linux 12") {
		t.Errorf("the Node is not the real Debian: %+v", info)
	}

	pod := realPod(f, node.Name)
	if err := f.Cluster.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, realPatience, func(ctx context.Context) string {
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

	// The drain evicts the pod, which a real kubelet ends.
	f.DeleteDeployment(t, md.Name)
	f.AwaitNothing(t)
}

func dedicated(f kit.Fleet) machinev1alpha1.Taint {
	return machinev1alpha1.Taint{Key: "example.org/dedicated", Value: f.Namespace, Effect: "NoSchedule"}
}

// realPod runs the image that the mirror of the local cloud has.
func realPod(f kit.Fleet, node string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "real"}}
	p.Spec.NodeName = node
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "registry.k8s.io/pause:3.10"}}
	return p
}

// logConsoles of a fleet's VMs, which tell why a machine does not join.
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
