package e2e

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/test/kit"
)

func humanKubeconfig(t *testing.T, f kit.Fleet) []byte {
	t.Helper()
	b, err := os.ReadFile(f.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wrongUser returns a kubeconfig of the right cluster with a token that was never issued.
func wrongUser(t *testing.T, f kit.Fleet) []byte {
	t.Helper()
	cfg, err := clientcmd.Load(humanKubeconfig(t, f))
	if err != nil {
		t.Fatal(err)
	}
	for name := range cfg.AuthInfos {
		cfg.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: "nobody-issued-this"}
	}
	b, err := clientcmd.Write(*cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func upsert(t *testing.T, f kit.Fleet, s *corev1.Secret, kubeconfig []byte) {
	t.Helper()
	err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(s), s)
	s.Data = map[string][]byte{"kubeconfig": kubeconfig}
	switch {
	case apierrors.IsNotFound(err):
		err = f.Client.Create(t.Context(), s)
	case err == nil:
		err = f.Client.Update(t.Context(), s)
	}
	if err != nil {
		t.Fatal(err)
	}
}
