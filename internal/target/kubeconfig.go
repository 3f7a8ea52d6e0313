package target

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// parseKubeconfig returns what the current context of a kubeconfig says. It is the
// input of whoever may write the Secret, so that nothing in it may run a command
// or read a file here: either could steal the identity of the provider.
//
// Errors tell what is wrong without a word of the content.
func parseKubeconfig(data []byte) (*rest.Config, error) {
	kc, err := clientcmd.Load(data)
	if err != nil {
		// The parser's error quotes what it could not parse.
		return nil, errors.New("is not a kubeconfig")
	}
	context, ok := kc.Contexts[kc.CurrentContext]
	if !ok {
		return nil, fmt.Errorf("current-context %q is not one of its contexts", kc.CurrentContext)
	}
	cluster, ok := kc.Clusters[context.Cluster]
	if !ok || cluster.Server == "" {
		return nil, fmt.Errorf("the context's cluster %q has no server", context.Cluster)
	}
	user, ok := kc.AuthInfos[context.AuthInfo]
	if !ok {
		return nil, fmt.Errorf("the context's user %q is not one of its users", context.AuthInfo)
	}
	if err := refuse(cluster, user); err != nil {
		return nil, err
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*kc, kc.CurrentContext, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, errors.New("is not a usable kubeconfig")
	}
	return cfg, nil
}

func refuse(cluster *api.Cluster, user *api.AuthInfo) error {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"exec", user.Exec != nil},
		{"auth-provider", user.AuthProvider != nil},
		{"tokenFile", user.TokenFile != ""},
		{"client-certificate", user.ClientCertificate != ""},
		{"client-key", user.ClientKey != ""},
		{"certificate-authority", cluster.CertificateAuthority != ""},
	} {
		if f.set {
			return fmt.Errorf("%s is refused: credentials must be in the kubeconfig itself (token, client-certificate-data, client-key-data, certificate-authority-data)", f.name)
		}
	}
	return nil
}
