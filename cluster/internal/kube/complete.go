package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/cluster/internal/apply"
	"github.com/drover-dev/drover/cluster/internal/kubeconfig"
)

// nodeTokens is the group of bootstrap tokens that kubeadm allows to join.
const nodeTokens = "system:bootstrappers:kubeadm:default-node-token"

// Complete creates the objects that kubeadm creates in a cluster: the rights of the administrator
// and of joining kubelets, and the public information by which kubelets find the cluster.
func (k ControlPlane) Complete(ctx context.Context, c client.Client) error {
	ca, err := k.CA()
	if err != nil {
		return err
	}
	objects, err := clusterObjects(k.Server(), ca)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := apply.Object(ctx, c, o); err != nil {
			return err
		}
	}
	return nil
}

func clusterObjects(server string, ca []byte) ([]client.Object, error) {
	info, err := clientcmd.Write(*kubeconfig.Anonymous(server, ca))
	if err != nil {
		return nil, fmt.Errorf("cluster-info: %w", err)
	}
	const clusterInfo = "cluster-info"
	readClusterInfo := metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: "kubeadm:bootstrap-signer-clusterinfo"}
	return []client.Object{
		bindGroup("drover:cluster-admins", adminGroup, "cluster-admin"),
		bindGroup("kubeadm:kubelet-bootstrap", nodeTokens, "system:node-bootstrapper"),
		bindGroup("kubeadm:node-autoapprove-bootstrap", nodeTokens,
			"system:certificates.k8s.io:certificatesigningrequests:nodeclient"),
		bindGroup("kubeadm:node-autoapprove-certificate-rotation", "system:nodes",
			"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"),
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: clusterInfo},
			Data:       map[string]string{"kubeconfig": string(info)},
		},
		&rbacv1.Role{
			ObjectMeta: readClusterInfo,
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{clusterInfo}, Verbs: []string{"get"},
			}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: readClusterInfo,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: readClusterInfo.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:anonymous"}},
		},
	}, nil
}

func bindGroup(name, group, role string) client.Object {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}
}
