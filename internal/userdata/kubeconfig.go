package userdata

import (
	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// bootstrapKubeconfig is what the kubelet asks for its client certificate with.
// Once it has one, it writes a kubeconfig of its own and needs the token no more. A
// token may have digits only, and is no number.
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
