package conformance

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

var kubeadmConfig = schema.GroupVersionKind{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmConfig"}

// kubeletOfATemplate are the files by which the kubelet of a simulated VM joins: an image with kubeadm has the unit, and
// "kubeadm join" writes the kubeconfig. The kubelet registers with the taint of Cluster API's contract.
func kubeletOfATemplate() []any {
	file := func(path, content string) any {
		return map[string]any{"path": path, "permissions": "0755", "content": content}
	}
	return []any{
		file("/etc/kubernetes/bootstrap-kubelet.conf", `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "$(server)", certificate-authority-data: "$(ca.crt|base64)"}}]
users: [{name: u, user: {token: "<<BOOTSTRAP_TOKEN>>"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`),
		file("/opt/bin/install-kubelet.sh", "#!/bin/sh\n"),
		file("/etc/systemd/system/kubelet.service", `[Service]
ExecStart=/opt/bin/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf --register-with-taints=`+machinev1alpha1.TaintUninitializedByClusterAPI+`:NoSchedule
[Install]
WantedBy=multi-user.target
`),
	}
}

// installKubeadm runs Cluster API's own kubeadm bootstrap provider, built from its module and as it is.
func installKubeadm(t *testing.T, p *kit.Plane) {
	t.Helper()
	core, err := coreTools.module("sigs.k8s.io/cluster-api")
	must(t, err)
	must(t, createCRDs(t.Context(), p.Client, filepath.Join(core, "bootstrap/kubeadm/config/crd/bases/*.yaml"), contracts))
	for _, k := range []string{"KubeadmConfig", "KubeadmConfigTemplate"} {
		must(t, awaitServed(t.Context(), p.Client, kubeadmConfig.GroupVersion().WithKind(k)))
	}
	must(t, p.Client.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "drover:provider-clusterapi:kubeadm", Labels: map[string]string{"rbac.drover.dev/aggregate-to-provider-clusterapi": "true"}},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{kubeadmConfig.Group}, Resources: []string{"kubeadmconfigs"}, Verbs: []string{"get", "create", "delete"}},
			{APIGroups: []string{kubeadmConfig.Group}, Resources: []string{"kubeadmconfigtemplates"}, Verbs: []string{"get"}},
		},
	}))
	ofCore("kubeadm", "sigs.k8s.io/cluster-api/bootstrap/kubeadm", "--kubeadmconfig-concurrency=5").run(t, p)
}

// TestBootstrapProviders has the kubeadm bootstrap provider make the user data of a Machine of the local cloud. The Machine
// reports the words of the provider while that cannot, joins, and leaves nothing behind.
func TestBootstrapProviders(t *testing.T) {
	t.Run("clusterapi", kubeadmMakesTheUserData)
}

func kubeadmMakesTheUserData(t *testing.T) {
	kit.OnlyInLong(t, "TestTheBootstrapContract")
	t.Parallel()
	capi, p := installedClusterAPI(t)
	must(t, awaitServed(t.Context(), p.Client, liftedKind("clusterapi", "Bootstrap")))
	installKubeadm(t, p)
	f := p.NewFleet(t)
	a := capi.account(t, f, map[string]any{
		"clusterName": "target", "controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(6443)},
		"bootstrapConfigKinds": []any{map[string]any{"kind": kubeadmConfig.Kind}},
	})

	class := f.Class("kubeadm", "local", `{"image":"ubuntu-24.04","size":"small"}`)
	class.Spec.UserData = &machinev1alpha1.UserData{BootstrapTemplateRef: &machinev1alpha1.BootstrapTemplateReference{
		APIGroup: kubeadmConfig.Group, Kind: "KubeadmConfigTemplate", Name: "workers", ProviderConfigRef: a.ProviderConfig(),
	}}
	f.Create(t, class)
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "w"}, Spec: f.MachineSpec(kit.NewVersion)}
	m.Spec.ClassRef.Name = class.Name
	f.Create(t, m)
	awaitValid := func(reason, text string) {
		t.Helper()
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
				return err.Error()
			}
			c := meta.FindStatusCondition(m.Status.Conditions, machinev1alpha1.ConditionValid)
			if c == nil || c.Reason != reason || !strings.Contains(c.Message, text) {
				return fmt.Sprintf("condition %+v", c)
			}
			return ""
		}, f.Describe)
	}
	awaitValid(machinev1alpha1.ReasonBootstrapTemplateInvalid, `spec.userData.bootstrapTemplateRef: templateRef.name: invalid value "workers"`)

	template := object(kubeadmConfig.GroupVersion().String(), "KubeadmConfigTemplate", "workers", map[string]any{"template": map[string]any{"spec": map[string]any{
		"files":              kubeletOfATemplate(),
		"preKubeadmCommands": []any{"/opt/bin/install-kubelet.sh " + kit.NewVersion, "systemctl enable --now kubelet"},
		"joinConfiguration": map[string]any{
			"discovery":        map[string]any{"file": map[string]any{"kubeConfigPath": "/etc/kubernetes/bootstrap-kubelet.conf"}, "tlsBootstrapToken": "<<BOOTSTRAP_TOKEN>>"},
			"nodeRegistration": map[string]any{"name": "<<MACHINE_NAME>>"},
		},
	}}})
	template.SetNamespace(f.Namespace)
	f.Create(t, template)
	// The provider needs the CA of the target cluster.
	awaitValid(machinev1alpha1.ReasonBootstrapConfigFailed, "CertificatesAvailable")
	f.Create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "target-ca", Labels: map[string]string{"cluster.x-k8s.io/cluster-name": "target"}},
		StringData: map[string]string{"tls.crt": "the CA", "tls.key": "not-needed"},
	})
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err.Error()
		}
		if m.Status.Phase != machinev1alpha1.MachineRunning {
			return fmt.Sprintf("phase %s, conditions %+v", m.Status.Phase, m.Status.Conditions)
		}
		return ""
	}, f.Describe)
	if own := m.Status.UserData; own == nil || own.Key != "value" || len(own.Hash) != 32 {
		t.Errorf("status.userData %+v", own)
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, machinev1alpha1.ConditionUserDataComplete); c != nil {
		t.Errorf("condition %+v", c)
	}
	left := func(ctx context.Context) string {
		for _, k := range []schema.GroupVersionKind{kubeadmConfig, {Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"}, liftedKind("clusterapi", "Bootstrap")} {
			l := &unstructured.UnstructuredList{}
			l.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
			if err := f.Client.List(ctx, l, client.InNamespace(f.Namespace)); err != nil || len(l.Items) > 0 {
				return fmt.Sprintf("%d of %s, %v", len(l.Items), k, err)
			}
		}
		return ""
	}
	// The shadow of the Machine has the Node, so that no token is renewed any more.
	patience.Eventually(t, func(ctx context.Context) string {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineList"})
		if err := f.Client.List(ctx, l, client.InNamespace(f.Namespace)); err != nil || len(l.Items) != 1 {
			return fmt.Sprintf("%d Machines, %v", len(l.Items), err)
		}
		if got, _, _ := unstructured.NestedString(l.Items[0].Object, "status", "nodeRef", "name"); got != m.Status.NodeRef.Name {
			return fmt.Sprintf("its Node is %q", got)
		}
		return ""
	}, f.Describe)
	must(t, f.Client.Delete(t.Context(), m))
	patience.Eventually(t, left, f.Describe)
}
