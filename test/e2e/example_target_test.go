package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestTheExampleOfATargetClusterWorks runs the script of examples/target like a user, and once
// more for a rotation.
func TestTheExampleOfATargetClusterWorks(t *testing.T) {
	t.Parallel()
	dir, name := t.TempDir(), "example-target"
	both := clientcmdapi.NewConfig()
	for context, c := range map[string]*kit.Cluster{"control": plane.Control, "target": plane.Target} {
		cfg, err := clientcmd.LoadFromFile(c.Kubeconfig)
		must(t, err)
		must(t, clientcmd.ResolveLocalPaths(cfg))
		of := cfg.Contexts[cfg.CurrentContext]
		both.Clusters[context], both.AuthInfos[context] = cfg.Clusters[of.Cluster], cfg.AuthInfos[of.AuthInfo]
		both.Contexts[context] = &clientcmdapi.Context{Cluster: context, AuthInfo: context}
	}
	must(t, clientcmd.WriteToFile(*both, filepath.Join(dir, "kubeconfig")))
	kubectl := fmt.Sprintf("#!/bin/sh\nexec %s kubectl \"$@\"\n", filepath.Join(os.Getenv("DROVER_BIN"), "drover-kube"))
	must(t, os.WriteFile(filepath.Join(dir, "kubectl"), []byte(kubectl), 0o755))

	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: name}}
	pc := &clusterv1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pc.Spec.Credentials = clusterv1alpha1.Credentials{
		Source: clusterv1alpha1.CredentialsSecret, SecretRef: &clusterv1alpha1.SecretKeySelector{Namespace: s.Namespace, Name: name, Key: "kubeconfig"},
	}
	t.Cleanup(func() {
		for _, o := range []client.Object{pc, s} {
			_ = plane.Client.Delete(context.Background(), o)
		}
	})
	run := func() string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(kit.Root(), "examples/target/kubeconfig.sh"))
		cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "kubeconfig"), "PATH="+dir+":"+os.Getenv("PATH"), "NAME="+name)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		must(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(s), s))
		cfg, err := clientcmd.Load(s.Data["kubeconfig"])
		must(t, err)
		token := cfg.AuthInfos["drover"].Token
		if strings.Contains(string(out), token) {
			t.Error("it prints the token")
		}
		return token
	}
	first := run()
	if left := time.Until(expiryOf(t, first)); left < 23*time.Hour || left > 25*time.Hour {
		t.Errorf("the token ends after %s, want a day", left)
	}
	must(t, plane.Client.Create(t.Context(), pc))
	patience.Eventually(t, func(ctx context.Context) string {
		if err := plane.Client.Get(ctx, client.ObjectKeyFromObject(pc), pc); err != nil {
			return err.Error()
		}
		reachable, authorized := pc.Status.GetCondition(clusterv1alpha1.ConditionReachable), pc.Status.GetCondition(clusterv1alpha1.ConditionAuthorized)
		if reachable.Status != corev1.ConditionTrue || authorized.Status != corev1.ConditionTrue {
			return fmt.Sprintf("%+v, %+v", reachable, authorized)
		}
		return ""
	})
	if run() == first {
		t.Error("the second run brings the same token")
	}
}

func expiryOf(t *testing.T, token string) time.Time {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatal("that is no token of a ServiceAccount")
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	must(t, err)
	var claims struct {
		Exp int64 `json:"exp"`
	}
	must(t, json.Unmarshal(b, &claims))
	return time.Unix(claims.Exp, 0)
}
