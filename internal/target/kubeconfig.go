package target

import (
	"errors"
	"fmt"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/drover-dev/drover/internal/text"
)

// ParseKubeconfig reads the current context of a kubeconfig of an operator. It refuses a kubeconfig that could
// run a command or read a file of the process. Errors never contain anything of its users.
func ParseKubeconfig(data []byte) (*rest.Config, error) { return parseKubeconfig(data, false) }

// parseKubeconfig reads the current context of a kubeconfig. It is the input of any user who may write the
// Secret, so that nothing in it may run a command or read a file here: either could steal the identity of the
// provider.
//
// The kubeconfig of a tenant may neither choose a proxy nor trust any server: see Networks.
//
// Errors describe the problem without a word of the content.
func parseKubeconfig(data []byte, ofTenant bool) (*rest.Config, error) {
	if len(data) == 0 {
		return nil, errors.New("is empty: must be a kubeconfig")
	}
	kc, err := clientcmd.Load(data)
	if err != nil {
		if inner, err := clientcmd.Load(text.Decoded(data)); err == nil && len(inner.Contexts) > 0 {
			return nil, errors.New("is base64 of a kubeconfig: must be the kubeconfig itself, which a Secret has in stringData, or encoded once in data")
		}
		// The parser's error quotes the text that it could not parse.
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
	if err := checkServer(cluster.Server); err != nil {
		return nil, err
	}
	if ofTenant {
		if err := refuseOfTenant(cluster); err != nil {
			return nil, err
		}
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

// checkServer accepts a URL with a host and, at most, a path. A password in it would be shown
// with the server.
func checkServer(server string) error {
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return errors.New("the server of the context's cluster is refused: must be a URL like https://10.0.0.1:6443")
	}
	if u.Scheme != "https" {
		return fmt.Errorf("the server of the context's cluster has the scheme %q: must be https", u.Scheme)
	}
	return nil
}

func refuseOfTenant(cluster *api.Cluster) error {
	const why = "%s is refused in a kubeconfig of a %s: only a %s may have it"
	switch {
	case cluster.ProxyURL != "":
		return fmt.Errorf(why, "proxy-url", kindProviderConfig, kindClusterProviderConfig)
	case cluster.InsecureSkipTLSVerify:
		return fmt.Errorf(why, "insecure-skip-tls-verify", kindProviderConfig, kindClusterProviderConfig)
	}
	return nil
}
