package config

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

// byConfig indexes Machines by the configuration that they use.
const byConfig = "drover.config"

// bySecret indexes configurations by their Secret.
const bySecret = "drover.secret"

func index(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &machinev1alpha1.Machine{}, byConfig, configOf)
}

func configOf(obj client.Object) []string {
	m, ok := obj.(*machinev1alpha1.Machine)
	if !ok {
		return nil
	}
	return []string{target.RefOf(m).String()}
}

func secretOf(obj client.Object) []string {
	o, ok := asObject(obj)
	if !ok {
		return nil
	}
	key, ok := target.SecretOf(o.ref, *o.spec)
	if !ok {
		return nil
	}
	return []string{key.String()}
}

// users counts the Machines that use a configuration. A Machine that is being deleted uses
// it until it is gone: its Node is drained, and its join token revoked, through it.
func users(ctx context.Context, reader client.Reader, ref target.Ref) (int, error) {
	list := &machinev1alpha1.MachineList{}
	if err := reader.List(ctx, list, client.MatchingFields{byConfig: ref.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return 0, err
	}
	return len(list.Items), nil
}
