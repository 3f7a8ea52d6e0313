package userdata

import (
	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// bootstrapKubeconfig is the kubeconfig with which the kubelet requests its client certificate. After that, it
// writes a kubeconfig of its own and no longer needs the token. The token is quoted: one of digits only would
// be read as a number.
const bootstrapKubeconfig = `apiVersion: v1
kind: Config
clusters:
- name: default
  cluster:
    certificate-authority: ` + pathCA + `
    server: "` + clusterv1alpha1.PlaceholderServer + `"
users:
- name: bootstrap
  user:
    token: "` + clusterv1alpha1.PlaceholderToken + `"
contexts:
- name: default
  context:
    cluster: default
    user: bootstrap
current-context: default
`
