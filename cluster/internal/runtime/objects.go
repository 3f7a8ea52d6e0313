package runtime

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"

	"github.com/drover-dev/drover/cluster/internal/apply"
	"github.com/drover-dev/drover/cluster/internal/crossplane"
)

// identityObjects returns the ServiceAccount of the process, and the Deployment that Crossplane
// would create for it. The Deployment has no replicas, because the process runs outside the
// cluster. It exists because the RBAC manager reads from it which ServiceAccount gets the rights of
// the revision.
func identityObjects(id identity, c customization, image string, owner metav1.OwnerReference) []client.Object {
	selector := map[string]string{pkgv1.LabelRevision: id.Revision}
	if id.Function {
		selector[pkgv1.LabelFunction] = id.Package
	} else {
		selector[pkgv1.LabelProvider] = id.Package
	}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: crossplane.Namespace, Name: c.ServiceAccount,
			Labels: c.Labels, Annotations: c.Annotations,
			OwnerReferences: []metav1.OwnerReference{owner},
		}},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: crossplane.Namespace, Name: id.Revision,
				OwnerReferences: []metav1.OwnerReference{owner},
			},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](0),
				Selector: &metav1.LabelSelector{MatchLabels: selector},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: selector},
					Spec: corev1.PodSpec{
						ServiceAccountName: c.ServiceAccount,
						Containers:         []corev1.Container{{Name: containerName, Image: image}},
					},
				},
			},
		},
	}
}

// withdraw deletes the Deployment of a revision that is not active any more, and thus the rights of
// its ServiceAccount.
func withdraw(ctx context.Context, c client.Client, id identity) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: crossplane.Namespace, Name: id.Revision}}
	return client.IgnoreNotFound(c.Delete(ctx, d))
}

// bound reports whether the RBAC manager has granted the ServiceAccount of a provider its rights.
// Functions get none, so for them it is always true.
func bound(ctx context.Context, c client.Client, id identity, serviceAccount string) (bool, error) {
	if id.Function {
		return true, nil
	}
	// The role and its binding have the same name. Either may be created first.
	key := client.ObjectKey{Name: fmt.Sprintf("crossplane:provider:%s:system", id.Revision)}
	role, binding := &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}
	for _, o := range []client.Object{role, binding} {
		if err := c.Get(ctx, key, o); err != nil {
			return false, client.IgnoreNotFound(err)
		}
	}
	return slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Name == serviceAccount }), nil
}

func applyAll(ctx context.Context, c client.Client, objects []client.Object) error {
	for _, o := range objects {
		if err := apply.Object(ctx, c, o); err != nil {
			return err
		}
	}
	return nil
}

// uncached returns the kinds that are read too rarely for an informer.
func uncached() []client.Object {
	return []client.Object{&corev1.Secret{}, &corev1.ServiceAccount{}, &appsv1.Deployment{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}}
}
