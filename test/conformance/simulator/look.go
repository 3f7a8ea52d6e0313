package simulator

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	xpresource "github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// intervalOf returns the interval after which the provider observes a managed resource again. The
// managed reconciler's interval honors the annotation. The provider ignores it if it has an old
// crossplane-runtime, as in a namespace with slow VMs.
func (c *cloud) intervalOf(mg xpresource.Managed, interval time.Duration) time.Duration {
	switch p := c.Poll; {
	case p.UntilReady != nil && mg.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue:
		return p.UntilReady.Duration
	case p.HonoursAnnotation && !c.isSlow(mg.GetNamespace()):
		return interval
	default:
		return pollInterval
	}
}

// isReady reports whether the provider counts a thing as Ready. provider-kubernetes does so at
// once, unless the readiness policy of the Object names a condition to wait for.
func (c *cloud) isReady(kind *Resource, id string, m *managedResource) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.things[key(kind, id)]
	if !ok || c.Poll.UntilReady == nil {
		return true
	}
	policy, _ := fieldpath.Pave(m.Object).GetString("spec.readiness.policy")
	return policy != "DeriveFromCelQuery" || t.waits == nil && !t.isStarting(time.Now())
}

// A tagger adds the tags to a resource that upjet's TagInitializer adds.
type tagger struct {
	kind   *Resource
	client client.Client
}

func (t *tagger) Initialize(ctx context.Context, mg xpresource.Managed) error {
	m := mg.(*managedResource)
	tags := "spec.forProvider.tags"
	if t.kind.VM != nil {
		tags = t.kind.VM.Tags.Path
	}
	missing := false
	for key, value := range xpresource.GetExternalTags(mg) {
		path := tags + "[" + key + "]"
		if had, err := fieldpath.Pave(m.Object).GetString(path); err != nil || had != value {
			m.set(path, value)
			missing = true
		}
	}
	if !missing {
		return nil
	}
	return t.client.Update(ctx, mg)
}
