package lift

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secretsFor is how long a Secret counts as it was read. A VM is looked at often while it
// starts, and all that share a provider config read the same credentials; no client
// here holds Secrets by a watch, which would take the right to list them all.
const secretsFor = 5 * time.Second

// briefly returns a client that asks the API server for the same Secret only so often.
// One that could not be read is read again at once.
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
