package kubelet

import (
	"crypto/x509"
	"fmt"
	"path"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// bootstrapConfig reads --bootstrap-kubeconfig and the files that it refers to, from the files of
// the VM, and not from those of the computer that simulates it.
func bootstrapConfig(flags map[string]string, files map[string]string) (*rest.Config, error) {
	if flags["kubeconfig"] == "" {
		return nil, fmt.Errorf("kubelet: --kubeconfig is missing: it would run without an API server")
	}
	file := flags["bootstrap-kubeconfig"]
	if file == "" {
		return nil, fmt.Errorf("kubelet: --bootstrap-kubeconfig is missing, and %s does not exist", flags["kubeconfig"])
	}
	text, ok := files[path.Clean(file)]
	if !ok {
		return nil, fmt.Errorf("kubelet: --bootstrap-kubeconfig: %s is missing", file)
	}
	config, err := clientcmd.Load([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("kubelet: %s is not a kubeconfig: %w", file, err)
	}
	if err := inline(config, files); err != nil {
		return nil, fmt.Errorf("kubelet: %s: %w", file, err)
	}
	rc, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubelet: %s: %w", file, err)
	}
	switch {
	case !strings.HasPrefix(rc.Host, "https://"):
		return nil, fmt.Errorf("kubelet: %s: server: invalid value %q: must be an https URL", file, rc.Host)
	case rc.BearerToken == "":
		return nil, fmt.Errorf("kubelet: %s: has no token", file)
	case !rc.Insecure && !x509.NewCertPool().AppendCertsFromPEM(rc.CAData):
		return nil, fmt.Errorf("kubelet: %s: certificate-authority: is not a PEM certificate", file)
	}
	return rc, nil
}

func inline(config *clientcmdapi.Config, files map[string]string) error {
	for _, c := range config.Clusters {
		if c.CertificateAuthority == "" {
			continue
		}
		text, ok := files[path.Clean(c.CertificateAuthority)]
		if !ok {
			return fmt.Errorf("certificate-authority: %s is missing", c.CertificateAuthority)
		}
		c.CertificateAuthority, c.CertificateAuthorityData = "", []byte(text)
	}
	for _, a := range config.AuthInfos {
		if a.TokenFile == "" {
			continue
		}
		text, ok := files[path.Clean(a.TokenFile)]
		if !ok {
			return fmt.Errorf("tokenFile: %s is missing", a.TokenFile)
		}
		a.TokenFile, a.Token = "", strings.TrimSpace(text)
	}
	return nil
}
