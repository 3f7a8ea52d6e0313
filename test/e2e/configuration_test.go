package e2e

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// configuration of a cluster, as a user writes it.
func configuration(t *testing.T, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(clusterv1alpha1.SchemeGroupVersion.WithKind(kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// TestATenantCannotUseTheProvidersIdentity repeats an attack that once made a tenant's Machine a
// Node of the control cluster.
func TestATenantCannotUseTheProvidersIdentity(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	injected := map[string]any{"credentials": map[string]any{"source": "InjectedIdentity"}}

	own := configuration(t, "ProviderConfig", f.Namespace, "own", injected)
	err := f.Client.Create(t.Context(), own)
	if !kerrors.IsInvalid(err) || !strings.Contains(err.Error(), "InjectedIdentity is refused in a ProviderConfig") {
		t.Errorf("a ProviderConfig: error %v", err)
	}
	shared := configuration(t, "ClusterProviderConfig", "", f.Namespace, map[string]any{"credentials": injected["credentials"], "allowedNamespaces": []any{f.Namespace}})
	must(t, f.Client.Create(t.Context(), shared))
	t.Cleanup(func() { _ = f.Client.Delete(context.Background(), shared) })

	for _, ref := range []machinev1alpha1.ClusterReference{{Kind: "ProviderConfig", Name: "own"}, {Kind: "ClusterProviderConfig", Name: f.Namespace}} {
		m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: strings.ToLower(ref.Kind)}, Spec: f.MachineSpec(kit.NewVersion)}
		m.Spec.ClusterRef = ref
		f.Create(t, m)
	}
	patience.Eventually(t, func(ctx context.Context) string {
		c := reachableOf(ctx, f, shared)
		if c.Status != corev1.ConditionFalse || string(c.Reason) != clusterv1alpha1.ReasonInjectedIdentityNotAllowed || !strings.Contains(c.Message, "--injected-identity-for") {
			return fmt.Sprintf("condition %+v", c)
		}
		return ""
	})
	f.Throughout(t, func(ctx context.Context) string {
		if s := noTokens(ctx, f); s != "" {
			return s
		}
		return noUserData(ctx, f, "")
	})
	must(t, f.Client.DeleteAllOf(t.Context(), &machinev1alpha1.Machine{}, client.InNamespace(f.Namespace)))
}

// TestAMachineNeedsTheAllowanceOfItsNamespace has a configuration that only allows another
// namespace.
func TestAMachineNeedsTheAllowanceOfItsNamespace(t *testing.T) {
	t.Parallel()
	f := plane.NewSharedTargetFleet(t)
	pc := &clusterv1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}
	f.Patch(t, pc, `{"spec":{"allowedNamespaces":["of-another-team"]}}`)
	m := &member{f: f, name: "m"}
	m.create(t, nil)
	patience.Eventually(t, func(context.Context) string {
		o := m.machine(t)
		for _, c := range o.Status.Conditions {
			if strings.Contains(c.Message, fmt.Sprintf("ClusterProviderConfig %s: Machines of namespace %q may not use it", f.Namespace, f.Namespace)) {
				return ""
			}
		}
		return fmt.Sprintf("conditions %+v", o.Status.Conditions)
	}, f.Describe)
	f.Throughout(t, func(ctx context.Context) string { return noTokens(ctx, f) })
	f.Patch(t, pc, fmt.Sprintf(`{"spec":{"allowedNamespaces":[%q]}}`, f.Namespace[:len(f.Namespace)-1]+"*"))
	m.awaitRunning(t)
	f.Patch(t, pc, `{"spec":{"allowedNamespaces":null}}`)
	// Without access to its configuration, the deletion ends at the drain timeout.
	f.Patch(t, m.machine(t), `{"spec":{"drain":{"timeout":"5s"}}}`)
	m.delete(t)
	patience.Eventually(t, m.gone, f.Describe)
	nodes, err := f.Nodes(t.Context())
	if err != nil || len(nodes) != 1 {
		t.Errorf("%d Nodes, %v: Drover may not touch it", len(nodes), err)
	}
	for i := range nodes {
		must(t, f.Cluster.Client.Delete(t.Context(), &nodes[i]))
	}
}

// TestAKubeconfigLeadsNowhereElse registers servers that redirect, that a tenant must not reach,
// or whose answers a tenant must not read.
func TestAKubeconfigLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	f := plane.NewTargetFleet(t)
	var followed atomic.Int32
	elsewhere := hostileServer(t, func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	redirecting := hostileServer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	})
	echoing := hostileServer(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "inner-secret", http.StatusInternalServerError)
	})
	for name, tc := range map[string]struct {
		cluster clientcmdapi.Cluster
		reason  string
		message string
	}{
		"redirect": {clusterOf(redirecting), clusterv1alpha1.ReasonUnreachable, "it answers with a redirect, which is not followed"},
		"echo":     {clusterOf(echoing), clusterv1alpha1.ReasonUnreachable, "it answers HTTP 500"},
		"http":     {clientcmdapi.Cluster{Server: "http://127.0.0.1:1/latest/meta-data"}, clusterv1alpha1.ReasonCredentialsInvalid, `the scheme "http": must be https`},
		"metadata": {clientcmdapi.Cluster{Server: "https://169.254.169.254"}, clusterv1alpha1.ReasonCredentialsInvalid, "a link-local address"},
		"proxied": {func() clientcmdapi.Cluster { c := clusterOf(elsewhere); c.ProxyURL = "http://127.0.0.1:1"; return c }(),
			clusterv1alpha1.ReasonCredentialsInvalid, "proxy-url is refused"},
		"insecure": {clientcmdapi.Cluster{Server: elsewhere.URL, InsecureSkipTLSVerify: true}, clusterv1alpha1.ReasonCredentialsInvalid, "insecure-skip-tls-verify is refused"},
	} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name}, Data: map[string][]byte{"kubeconfig": kubeconfigOf(t, tc.cluster)}}
		f.Create(t, s)
		pc := configuration(t, "ProviderConfig", f.Namespace, name, map[string]any{"credentials": map[string]any{"source": "Secret", "secretRef": map[string]any{"name": name}}})
		f.Create(t, pc)
		patience.Eventually(t, func(ctx context.Context) string {
			c := reachableOf(ctx, f, pc)
			if c.Status != corev1.ConditionFalse || string(c.Reason) != tc.reason || !strings.Contains(c.Message, tc.message) || strings.Contains(c.Message, "inner-secret") {
				return fmt.Sprintf("%s: condition %+v", name, c)
			}
			return ""
		})
	}
	if followed.Load() > 0 {
		t.Errorf("%d calls to where a server leads", followed.Load())
	}
	kubectl(t, f, "delete", "providerconfigs.cluster.drover.dev", "--all")
}

func hostileServer(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func clusterOf(s *httptest.Server) clientcmdapi.Cluster {
	return clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})}
}

func kubeconfigOf(t *testing.T, c clientcmdapi.Cluster) []byte {
	t.Helper()
	b, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": &c}, AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {Token: "t"}},
		Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	})
	must(t, err)
	return b
}

// reachableOf returns the condition Reachable of a configuration, empty if there is none.
func reachableOf(ctx context.Context, f kit.Fleet, config *unstructured.Unstructured) xpv2.Condition {
	pc := &clusterv1alpha1.ClusterProviderConfig{}
	if config.GetNamespace() == "" {
		_ = f.Client.Get(ctx, client.ObjectKeyFromObject(config), pc)
		return pc.Status.GetCondition(clusterv1alpha1.ConditionReachable)
	}
	own := &clusterv1alpha1.ProviderConfig{}
	_ = f.Client.Get(ctx, client.ObjectKeyFromObject(config), own)
	return own.Status.GetCondition(clusterv1alpha1.ConditionReachable)
}
