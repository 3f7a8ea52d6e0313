package installations

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/installations"
)

// Known installations of Drover: the ID of the present one, empty if Drover's definitions do not
// exist, and those that the record proves to be gone.
type Known struct {
	Present string
	Gone    map[string]bool
}

// Read returns the known installations.
func Read(ctx context.Context, live client.Reader) (Known, error) {
	k := &keeper{live: live}
	uid, err := k.uid(ctx, definitionKind, v1alpha1.DefinitionOfInstallation)
	if err != nil || uid == "" {
		return Known{}, err
	}
	record := &corev1.ConfigMap{}
	if err := live.Get(ctx, client.ObjectKey{Namespace: v1alpha1.NamespaceOfInstallations, Name: v1alpha1.ConfigMapOfInstallations}, record); client.IgnoreNotFound(err) != nil {
		return Known{}, fmt.Errorf("cannot read the ConfigMap %s: %w", v1alpha1.ConfigMapOfInstallations, err)
	}
	return Known{Present: string(uid), Gone: installations.Gone(record.Data, string(uid))}, nil
}
