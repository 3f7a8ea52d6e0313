package lift

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secretsFor is how long a Secret is cached. A VM is polled often while it starts, and all VMs of a provider
// config read the same credentials. No client here caches Secrets by a watch, which would need the right to
// list them all.
const secretsFor = 5 * time.Second

// briefly returns a client that reads the same Secret from the API server at most once per secretsFor. A failed
// read is not cached.
func briefly(c client.Client, now clock.Clock) client.Client {
	return brief{Client: c, secrets: cache.NewExpiringWithClock(now)}
}

type brief struct {
	client.Client
	secrets *cache.Expiring
}

func (b brief) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	s, ok := obj.(*corev1.Secret)
	if !ok {
		return b.Client.Get(ctx, key, obj, opts...)
	}
	if was, ok := b.secrets.Get(key); ok {
		was.(*corev1.Secret).DeepCopyInto(s)
		return nil
	}
	if err := b.Client.Get(ctx, key, s, opts...); err != nil {
		return err
	}
	b.secrets.Set(key, s.DeepCopy(), secretsFor)
	return nil
}
