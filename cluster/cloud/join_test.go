package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/patience"
)

// cluster is a real API server, configured as kubeadm configures it.
type cluster struct {
	kubernetes.Interface
	config *rest.Config
}

func underTest(t *testing.T) *cluster {
	t.Helper()
	file := os.Getenv("KUBECONFIG_UNDER_TEST")
	if file == "" {
		t.Skip("set KUBECONFIG_UNDER_TEST to an admin kubeconfig of a cluster with TLS bootstrap to run this test, as make integration does")
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	must(t, err)
	must(t, rest.LoadTLSFiles(config))
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return &cluster{client, config}
}

func TestAVMJoins(t *testing.T) {
	c, ctx := underTest(t), context.Background()
	d := start(t, t.TempDir())
	vm := c.createVM(t, d, c.token(t))
	node := c.waitReady(t, vm.Name)

	if node.Spec.ProviderID != vm.ProviderID {
		t.Errorf("provider ID %s, want %s", node.Spec.ProviderID, vm.ProviderID)
	}
	if v := node.Status.NodeInfo.KubeletVersion; v != "v1.35.4" {
		t.Errorf("kubelet version %s", v)
	}
	for k, want := range map[string]string{"tier": "web", "node.kubernetes.io/pool": "blue",
		corev1.LabelHostname: vm.Name, corev1.LabelTopologyZone: "zone-a"} {
		if got := node.Labels[k]; got != want {
			t.Errorf("label %s is %q, want %q", k, got, want)
		}
	}
	if i := len(node.Spec.Taints); i == 0 || node.Spec.Taints[0].Key != "dedicated" {
		t.Errorf("taints %v", node.Spec.Taints)
	}
	vm, err := d.GetVM(ctx, vm.ID)
	must(t, err)
	if vm.State != localcloud.StateRunning || node.Status.Addresses[0].Address != vm.Addresses[0].Address {
		t.Errorf("VM %+v, addresses of the Node %v", vm, node.Status.Addresses)
	}

	pod := c.createPod(t, vm.Name)
	eventually(t, "the pod is Ready and has an address", func() bool {
		p, err := c.CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
		must(t, err)
		return p.Status.Phase == corev1.PodRunning && p.Status.PodIP != ""
	})
	must(t, c.PolicyV1().Evictions("default").Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: "default"}}))
	eventually(t, "the evicted pod is gone", func() bool {
		_, err := c.CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestANodeStaysWhenTheDaemonIsKilled(t *testing.T) {
	c, dir := underTest(t), t.TempDir()
	d := start(t, dir)
	vm := c.createVM(t, d, c.token(t))
	before := c.waitReady(t, vm.Name)
	d.kill()
	renewed := c.lease(t, vm.Name)

	d = start(t, dir)
	eventually(t, "the lease is renewed again", func() bool { return c.lease(t, vm.Name).After(renewed) })
	after := c.waitReady(t, vm.Name)
	if before.UID != after.UID {
		t.Error("the Node was made anew")
	}
	console, err := d.Console(context.Background(), vm.ID)
	must(t, err)
	if n := strings.Count(console, "registered Node"); n != 1 {
		t.Errorf("the console shows %d registrations, want 1:\n%s", n, console)
	}
	c.waitRunning(t, c.createPod(t, vm.Name))
}

func TestADeletedNodeIsNotRegisteredAgain(t *testing.T) {
	c, ctx, dir := underTest(t), context.Background(), t.TempDir()
	d := start(t, dir)
	vm := c.createVM(t, d, c.token(t))
	c.waitReady(t, vm.Name)
	must(t, c.CoreV1().Nodes().Delete(ctx, vm.Name, metav1.DeleteOptions{}))
	c.waitConsole(t, d, vm.ID, "was deleted")
	d.kill()

	d = start(t, dir)
	c.waitConsole(t, d, vm.ID, "it is registered only at boot")
	if _, err := c.CoreV1().Nodes().Get(ctx, vm.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Node is there again: %v", err)
	}
}

func TestNothingOfALostVMGoesOn(t *testing.T) {
	ctx := context.Background()
	lose := map[string]func(*testing.T, *daemon, *localcloud.VM){
		"Vanish": func(t *testing.T, d *daemon, vm *localcloud.VM) {
			f, err := d.CreateFault(ctx, localcloud.Fault{Kind: localcloud.FaultVanish, Match: localcloud.FaultMatch{Name: vm.Name}})
			must(t, err)
			if f.Count != 1 {
				t.Errorf("the fault hit %d VMs, want 1", f.Count)
			}
			if _, err := d.GetVM(ctx, vm.ID); !localcloud.IsNotFound(err) {
				t.Errorf("error %v, want NotFound", err)
			}
		},
		"KubeletStops": func(t *testing.T, d *daemon, vm *localcloud.VM) {
			_, err := d.CreateFault(ctx, localcloud.Fault{Kind: localcloud.FaultKubeletStops, Match: localcloud.FaultMatch{Name: vm.Name}})
			must(t, err)
			if got, err := d.GetVM(ctx, vm.ID); err != nil || got.State != localcloud.StateRunning {
				t.Errorf("VM %+v, error %v, want it Running", got, err)
			}
		},
		"Delete": func(t *testing.T, d *daemon, vm *localcloud.VM) {
			must(t, d.DeleteVM(ctx, vm.ID))
			if _, err := d.GetVM(ctx, vm.ID); !localcloud.IsNotFound(err) {
				t.Errorf("error %v, want NotFound", err)
			}
		},
	}
	for name, do := range lose {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := underTest(t)
			d := start(t, t.TempDir())
			vm := c.createVM(t, d, c.token(t))
			c.waitReady(t, vm.Name)
			first := c.lease(t, vm.Name)
			eventually(t, "the lease is renewed", func() bool { return c.lease(t, vm.Name).After(first) })

			do(t, d, vm)
			pod := c.createPod(t, vm.Name)
			// A lease is due every second; one write may have been on its way.
			last, since := c.lease(t, vm.Name), time.Now()
			eventually(t, "the lease is not renewed for 4 s", func() bool {
				if now := c.lease(t, vm.Name); now.After(last) {
					last, since = now, time.Now()
				}
				return time.Since(since) > 4*time.Second
			})
			p, err := c.CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
			must(t, err)
			if p.Status.Phase != corev1.PodPending {
				t.Errorf("the pod is %s", p.Status.Phase)
			}
			if _, err := c.CoreV1().Nodes().Get(ctx, vm.Name, metav1.GetOptions{}); err != nil {
				t.Errorf("the Node of a lost VM must stay: %v", err)
			}
		})
	}
}

func TestAKubeletThatRequestsOneGetsAServingCertificate(t *testing.T) {
	c, ctx, dir := underTest(t), context.Background(), t.TempDir()
	d := start(t, dir)
	vm := c.createNamedVM(t, d, c.token(t), "serving-"+rand.String(6))
	node := c.waitReady(t, vm.Name)

	var request *certificatesv1.CertificateSigningRequest
	eventually(t, "there is a request", func() bool {
		list, err := c.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{
			FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName})
		must(t, err)
		for _, r := range list.Items {
			if r.Spec.Username == "system:node:"+vm.Name {
				request = &r
			}
		}
		return request != nil
	})
	block, _ := pem.Decode(request.Spec.Request)
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	must(t, err)
	if asked.DNSNames[0] != vm.Name || asked.IPAddresses[0].String() != node.Status.Addresses[0].Address {
		t.Errorf("it asks for %v and %v", asked.DNSNames, asked.IPAddresses)
	}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test", Message: "approved by a test"}}
	_, err = c.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{})
	must(t, err)
	eventually(t, "the kubelet keeps the certificate", func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "vms", vm.ID+".json"))
		must(t, err)
		var record struct {
			Kubelet struct {
				Serving struct{ Certificate []byte }
			}
		}
		must(t, json.Unmarshal(b, &record))
		return len(record.Kubelet.Serving.Certificate) > 0
	})
}

func TestAWrongTokenIsSaidOnTheConsole(t *testing.T) {
	c := underTest(t)
	d := start(t, t.TempDir())
	vm := c.createVM(t, d, "abcdef.0123456789abcdef")
	console := c.waitConsole(t, d, vm.ID, "TLS bootstrap failed, will try again: ")
	if strings.Contains(console, "0123456789abcdef") {
		t.Errorf("the console shows the token:\n%s", console)
	}
}

func (c *cluster) createVM(t *testing.T, d *daemon, token string) *localcloud.VM {
	t.Helper()
	return c.createNamedVM(t, d, token, "join-"+rand.String(6))
}

func (c *cluster) createNamedVM(t *testing.T, d *daemon, token, name string) *localcloud.VM {
	t.Helper()
	vm, err := d.CreateVM(context.Background(), localcloud.CreateVMRequest{
		Name: name, Image: localcloud.ImageUbuntu2404, Size: localcloud.SizeSmall, UserData: c.userData(t, name, token)})
	must(t, err)
	t.Cleanup(func() {
		err := c.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return vm
}

func (c *cluster) userData(t *testing.T, name, token string) []byte {
	t.Helper()
	tmpl, err := template.ParseFiles("testdata/user-data.yaml")
	must(t, err)
	var b bytes.Buffer
	must(t, tmpl.Execute(&b, map[string]string{
		"Name": name, "Server": c.config.Host, "CA": base64.StdEncoding.EncodeToString(c.config.CAData), "Token": token,
		"Serving": strconv.FormatBool(strings.HasPrefix(name, "serving-"))}))
	return b.Bytes()
}

// token creates a bootstrap token.
func (c *cluster) token(t *testing.T) string {
	t.Helper()
	id, secret := rand.String(6), rand.String(16)
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id, Namespace: "kube-system"},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true",
			"auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
			"expiration":        time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		},
	}
	_, err := c.CoreV1().Secrets(s.Namespace).Create(context.Background(), s, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		if err := c.CoreV1().Secrets(s.Namespace).Delete(context.Background(), s.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return id + "." + secret
}

func (c *cluster) createPod(t *testing.T, node string) string {
	t.Helper()
	p, err := c.CoreV1().Pods("default").Create(context.Background(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "join-"},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "busybox"}}},
	}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		err := c.CoreV1().Pods("default").Delete(context.Background(), p.Name, *metav1.NewDeleteOptions(0))
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return p.Name
}

func (c *cluster) waitRunning(t *testing.T, pod string) {
	t.Helper()
	eventually(t, "the pod is Running", func() bool {
		p, err := c.CoreV1().Pods("default").Get(context.Background(), pod, metav1.GetOptions{})
		must(t, err)
		return p.Status.Phase == corev1.PodRunning
	})
}

func (c *cluster) waitReady(t *testing.T, name string) *corev1.Node {
	t.Helper()
	var node *corev1.Node
	eventually(t, "Node "+name+" is Ready and has a lease", func() bool {
		var err error
		if node, err = c.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{}); err != nil {
			return false
		}
		if _, err := c.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(context.Background(), name, metav1.GetOptions{}); err != nil {
			return false
		}
		for _, cond := range node.Status.Conditions {
			if cond.Type == corev1.NodeReady {
				return cond.Status == corev1.ConditionTrue
			}
		}
		return false
	})
	return node
}

// lease returns the time of the last renewal of a Node's lease.
func (c *cluster) lease(t *testing.T, name string) time.Time {
	t.Helper()
	l, err := c.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(context.Background(), name, metav1.GetOptions{})
	must(t, err)
	return l.Spec.RenewTime.Time
}

func (c *cluster) waitConsole(t *testing.T, d *daemon, id, text string) (console string) {
	t.Helper()
	eventually(t, "the console says "+text, func() bool {
		var err error
		console, err = d.Console(context.Background(), id)
		must(t, err)
		return strings.Contains(console, text)
	})
	return console
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	patience.Until(t, what, ok)
}
