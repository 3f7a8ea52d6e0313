package config

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

// byConfig indexes WorkerNodes and JoinTokens by the configuration they use.
const byConfig = "drover.config"

// bySecret indexes configurations by their Secret.
const bySecret = "drover.secret"

func index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, obj := range []client.Object{&v1alpha1.WorkerNode{}, &v1alpha1.JoinToken{}} {
		if err := indexer.IndexField(ctx, obj, byConfig, configOf); err != nil {
			return err
		}
	}
	return nil
}

func configOf(obj client.Object) []string {
	mg, ok := obj.(resource.ModernManaged)
	if !ok {
		return nil
	}
	return []string{target.RefOf(mg).String()}
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

// users counts who uses a configuration.
func users(ctx context.Context, reader client.Reader, ref target.Ref) (workerNodes, joinTokens int, err error) {
	var wns v1alpha1.WorkerNodeList
	var jts v1alpha1.JoinTokenList
	for _, list := range []client.ObjectList{&wns, &jts} {
		if err := reader.List(ctx, list, client.MatchingFields{byConfig: ref.String()}, client.UnsafeDisableDeepCopy); err != nil {
			return 0, 0, err
		}
	}
	return len(wns.Items), len(jts.Items), nil
}
