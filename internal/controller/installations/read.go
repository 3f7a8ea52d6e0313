package installations

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/installations"
)

// Read the ID of the present installation, and the installations that the record proves to be
// gone. The ID is empty if Drover's definitions are not there.
func Read(ctx context.Context, live client.Reader) (present string, gone map[string]bool, err error) {
	k := &keeper{live: live}
	uid, err := k.uid(ctx, definitionKind, v1alpha1.DefinitionOfInstallation)
	if err != nil || uid == "" {
		return "", nil, err
	}
	record := &corev1.ConfigMap{}
	if err := live.Get(ctx, client.ObjectKey{Namespace: v1alpha1.NamespaceOfInstallations, Name: v1alpha1.ConfigMapOfInstallations}, record); client.IgnoreNotFound(err) != nil {
		return "", nil, fmt.Errorf("cannot read the ConfigMap %s: %w", v1alpha1.ConfigMapOfInstallations, err)
	}
	return string(uid), installations.Gone(record.Data, string(uid)), nil
}
