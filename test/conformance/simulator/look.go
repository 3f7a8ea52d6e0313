package simulator

import (
	"context"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	xpresource "github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/plan"
)

// intervalOf returns the interval after which the provider observes a managed resource again. In a
// namespace with slow VMs, the provider is an old one that ignores the annotation.
func (c *cloud) intervalOf(mg xpresource.Managed, interval time.Duration) time.Duration {
	p := c.Poll
	if p.UntilReady != nil && mg.GetCondition(xpv1.TypeReady).Status != corev1.ConditionTrue {
		return p.UntilReady.Duration
	}
	if own, err := time.ParseDuration(mg.GetAnnotations()[plan.AnnotationPollInterval]); err == nil && p.HonoursAnnotation && !c.isSlow(mg.GetNamespace()) {
		return own
	}
	return interval
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
	missing := false
	for key, value := range xpresource.GetExternalTags(mg) {
		path := t.kind.VM.Tags.Path + "[" + key + "]"
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
