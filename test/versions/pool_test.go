package versions

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// Names of the MachineDeployment of a pool, and of its workload and its budget.
const (
	deploymentName = "workers"
	workloadName   = "held"
)

// A pool is a MachineDeployment of Nodes of the target cluster, with as many pods as Machines. Between hold
// and relax a budget allows no eviction of the pods.
type pool struct {
	kit.Fleet
	name string
	size int32
}

// start creates the MachineDeployment with a class and a version of the kubelet, and the pods.
func (p *pool) start(t *testing.T, class, version string) {
	t.Helper()
	md := p.Deployment(deploymentName, p.size, 1, 0)
	md.Spec.Template.Spec.ClassRef.Name, md.Spec.Template.Spec.Version = class, version
	// The pods of a pool must not run on Nodes of another one.
	md.Spec.Template.Spec.Taints = []machinev1alpha1.Taint{{Key: "example.org/pool", Value: p.Namespace, Effect: string(corev1.TaintEffectNoSchedule)}}
	p.Create(t, md)

	labels := map[string]string{"app": workloadName}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: workloadName}}
	d.Spec.Replicas = ptr.To(p.size)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "example.org/pool", Value: p.Namespace, Effect: corev1.TaintEffectNoSchedule}}
	// The mirror of the local cloud has this image.
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "registry.k8s.io/pause:3.10"}}
	b := p.budget()
	b.Spec.Selector, b.Spec.MaxUnavailable = d.Spec.Selector, ptr.To(intstr.FromInt32(1))
	for _, o := range []client.Object{d, b} {
		p.CreateIn(t, p.Cluster, o)
	}
}

func (p *pool) budget() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: workloadName}}
}

// awaitNodes waits until the rollout of the pool is complete, its Nodes are Ready with kubelets of the
// version, the kubelets have their certificates, and the pods run. It returns the names of the Nodes.
func (p *pool) awaitNodes(t *testing.T, version string) []string {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		if s := p.Unsettled(ctx, deploymentName); s != "" {
			return s
		}
		return p.WorkloadUnready(ctx, workloadName, p.size)
	}, p.Describe, p.consoles)
	nodes, err := p.Nodes(t.Context())
	if err != nil || len(nodes) != int(p.size) {
		t.Fatalf("%d Nodes, want %d: %v", len(nodes), p.size, err)
	}
	var names []string
	for _, n := range nodes {
		if got := n.Status.NodeInfo.KubeletVersion; got != version {
			t.Errorf("Node %s has a kubelet %s, want %s", n.Name, got, version)
		}
		if s := unready(n); s != "" {
			t.Error(s)
		}
		names = append(names, n.Name)
		t.Logf("%s: Node %s is Ready: kubelet %s, %s, %s, kernel %s", p.name, n.Name, n.Status.NodeInfo.KubeletVersion,
			n.Status.NodeInfo.ContainerRuntimeVersion, n.Status.NodeInfo.OSImage, n.Status.NodeInfo.KernelVersion)
	}
	patience.Eventually(t, func(ctx context.Context) string { return p.withoutCertificates(ctx, names) })
	return names
}

func unready(n corev1.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return fmt.Sprintf("Node %s is not Ready: %+v", n.Name, n.Status.Conditions)
}

// withoutCertificates returns which Node lacks a client certificate or a serving certificate that Drover
// approved, "" if no Node does.
func (p *pool) withoutCertificates(ctx context.Context, nodes []string) string {
	l := &certificatesv1.CertificateSigningRequestList{}
	if err := p.Cluster.Client.List(ctx, l); err != nil {
		return err.Error()
	}
	for _, n := range nodes {
		for _, signer := range []string{certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName} {
			if !slices.ContainsFunc(l.Items, func(r certificatesv1.CertificateSigningRequest) bool {
				return r.Spec.SignerName == signer && subject(r) == "system:node:"+n && isApprovedByDrover(r) && len(r.Status.Certificate) > 0
			}) {
				return fmt.Sprintf("Node %s has no certificate of %s that Drover approved", n, signer)
			}
		}
	}
	return ""
}

// subject returns the common name in a request.
func subject(r certificatesv1.CertificateSigningRequest) string {
	block, _ := pem.Decode(r.Spec.Request)
	if block == nil {
		return ""
	}
	c, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return ""
	}
	return c.Subject.CommonName
}

func isApprovedByDrover(r certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved && c.Reason == machinev1alpha1.ReasonDroverMachine
	})
}

// roll sets another version of the kubelet.
func (p *pool) roll(t *testing.T, version string) {
	t.Helper()
	md := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: deploymentName}}
	p.Patch(t, md, fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, version))
}

// awaitVersionSkew waits until the pool reports that the kubelet is newer than the API server. No VM is
// created meanwhile.
func (p *pool) awaitVersionSkew(t *testing.T, server, kubelet string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		md := &machinev1alpha1.MachineDeployment{}
		if err := p.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: deploymentName}, md); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(md.Status.Conditions, machinev1alpha1.ConditionReplicaFailure)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != machinev1alpha1.ReasonVersionSkew ||
			!strings.Contains(c.Message, server) || !strings.Contains(c.Message, kubelet) {
			return fmt.Sprintf("condition %+v, want %s of %s and %s", c, machinev1alpha1.ReasonVersionSkew, kubelet, server)
		}
		return ""
	}, p.Describe)
	if vms, err := p.VMs(t.Context()); err != nil || len(vms) != int(p.size) {
		t.Errorf("%d VMs, want the %d old ones: %v", len(vms), p.size, err)
	}
}

// awaitBlockedDrain waits until the drain of a Node reports the budget. From then on no pod is evicted, and
// the Node stays cordoned.
func (p *pool) awaitBlockedDrain(t *testing.T) {
	t.Helper()
	var node string
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := p.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		for _, m := range machines {
			if m.Status.Drain == nil || m.Status.NodeRef == nil {
				continue
			}
			for _, left := range m.Status.Drain.Pods {
				if strings.HasPrefix(left.Name, workloadName+"-") && strings.Contains(left.Reason, "PodDisruptionBudget") {
					node = m.Status.NodeRef.Name
					return ""
				}
			}
		}
		return "no drain reports the budget"
	}, p.Describe, p.consoles)
	p.Throughout(t, func(ctx context.Context) string {
		n := &corev1.Node{}
		if err := p.Cluster.Client.Get(ctx, client.ObjectKey{Name: node}, n); err != nil || !n.Spec.Unschedulable || n.DeletionTimestamp != nil {
			return fmt.Sprintf("Node %s does not stay cordoned: %v", node, err)
		}
		if s := unready(*n); s != "" {
			return s
		}
		pods, err := p.pods(ctx)
		if err != nil {
			return err.Error()
		}
		for _, pod := range pods {
			if pod.DeletionTimestamp != nil {
				return fmt.Sprintf("pod %s is evicted although its budget does not allow it", pod.Name)
			}
		}
		return ""
	})
}

// hold changes the budget so that no pod may be evicted.
func (p *pool) hold(t *testing.T) {
	t.Helper()
	p.PatchIn(t, p.Cluster, p.budget(), fmt.Sprintf(`{"spec":{"minAvailable":%d,"maxUnavailable":null}}`, p.size))
}

// relax changes the budget so that one pod at a time may be evicted.
func (p *pool) relax(t *testing.T) {
	t.Helper()
	p.PatchIn(t, p.Cluster, p.budget(), `{"spec":{"minAvailable":null,"maxUnavailable":1}}`)
}

// awaitDeleted waits until Nodes are deleted.
func (p *pool) awaitDeleted(t *testing.T, nodes []string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		for _, name := range nodes {
			if err := p.Cluster.Client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Node{}); !apierrors.IsNotFound(err) {
				return fmt.Sprintf("Node %s is not deleted: %v", name, err)
			}
		}
		return ""
	}, p.Describe)
}

func (p *pool) pods(ctx context.Context) ([]corev1.Pod, error) {
	l := &corev1.PodList{}
	err := p.Cluster.Client.List(ctx, l, client.InNamespace(p.Namespace))
	return l.Items, err
}

// stop deletes the pool and its pods, and waits until everything of it is deleted.
func (p *pool) stop(t *testing.T) {
	t.Helper()
	p.DeleteWorkload(t, workloadName)
	if err := p.DeleteBudget(t.Context(), workloadName); err != nil {
		t.Fatal(err)
	}
	p.DeleteDeployment(t, deploymentName)
}

// consoles returns the end of the console of each VM, which shows why a VM does not join.
func (p *pool) consoles(ctx context.Context) string {
	ctx = context.WithoutCancel(ctx)
	vms, err := p.VMs(ctx)
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, vm := range vms {
		text, err := p.Cloud.Console(ctx, vm.ID)
		lines := strings.Split(text, "\n")
		out = append(out, fmt.Sprintf("console of VM %s, which is %s (%v): %v", vm.ID, vm.State, vm.Error, err))
		out = append(out, lines[max(0, len(lines)-60):]...)
	}
	return strings.Join(out, "\n")
}
