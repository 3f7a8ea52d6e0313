// Package kubeconfig writes kubeconfig files.
package kubeconfig

import (
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/drover-dev/drover/cluster/internal/certs"
	"github.com/drover-dev/drover/cluster/internal/files"
)

// Certificate returns a kubeconfig whose user has a client certificate.
func Certificate(server string, ca []byte, user string, pair certs.Pair) *api.Config {
	return config(server, ca, user, &api.AuthInfo{ClientCertificateData: pair.Cert, ClientKeyData: pair.Key})
}

// TokenFile returns a kubeconfig whose user has a token in a file. Clients read the file again
// every minute.
func TokenFile(server string, ca []byte, user, path string) *api.Config {
	return config(server, ca, user, &api.AuthInfo{TokenFile: path})
}

// Anonymous returns a kubeconfig without a user, as in the ConfigMap cluster-info.
func Anonymous(server string, ca []byte) *api.Config {
	c := api.NewConfig()
	c.Clusters[""] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	return c
}

// Write writes a kubeconfig that only its owner can read.
func Write(path string, c *api.Config) error {
	b, err := clientcmd.Write(*c)
	if err != nil {
		return err
	}
	return files.Write(path, b)
}

func config(server string, ca []byte, user string, auth *api.AuthInfo) *api.Config {
	const name = "drover"
	c := api.NewConfig()
	c.Clusters[name] = &api.Cluster{Server: server, CertificateAuthorityData: ca}
	c.AuthInfos[user] = auth
	c.Contexts[name] = &api.Context{Cluster: name, AuthInfo: user}
	c.CurrentContext = name
	return c
}
