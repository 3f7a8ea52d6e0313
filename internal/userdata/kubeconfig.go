package userdata

import (
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// bootstrapKubeconfig is what the kubelet asks for its client certificate with.
// Once it has one, it writes a kubeconfig of its own and needs the token no more.
func bootstrapKubeconfig(in Input) (string, error) {
	const cluster, user, context = "default", "bootstrap", "default"
	b, err := yaml.Marshal(clientcmdv1.Config{
		APIVersion: "v1",
		Kind:       "Config",
		Clusters: []clientcmdv1.NamedCluster{{
			Name:    cluster,
			Cluster: clientcmdv1.Cluster{Server: in.Server, CertificateAuthorityData: in.CA},
		}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{
			Name:     user,
			AuthInfo: clientcmdv1.AuthInfo{Token: in.Token},
		}},
		Contexts: []clientcmdv1.NamedContext{{
			Name:    context,
			Context: clientcmdv1.Context{Cluster: cluster, AuthInfo: user},
		}},
		CurrentContext: context,
	})
	return string(b), err
}
