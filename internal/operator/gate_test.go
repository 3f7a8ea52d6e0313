package operator

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/gate"
	"github.com/drover-dev/drover/test/patience"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/drover-dev/drover/internal/undecoded"
)

// runnables is a manager that only records the runnables that are added. Discovery has its kind after some requests.
type runnables struct {
	ctrl.Manager
	added []manager.Runnable
	meta.RESTMapper
	// lag is the number of requests to discovery that do not know the kind yet, and asked is that of all.
	lag, asked int
}

func (m *runnables) GetRESTMapper() meta.RESTMapper { return m }

func (m *runnables) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m.asked++; m.asked <= m.lag {
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return &meta.RESTMapping{}, nil
}

func (m *runnables) Add(r manager.Runnable) error {
	m.added = append(m.added, r)
	return nil
}

func TestGated(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}
	broken := errors.New("broken")

	t.Run("SetupWaitsForTheCRD", func(t *testing.T) {
		o := controller.Options{Gate: &gate.Gate[schema.GroupVersionKind]{}}
		there, calls := false, make(chan bool, 2)
		Gated(&runnables{}, o, func() error { calls <- there; return nil }, kind)
		there = true
		o.Gate.Set(kind, true)
		select {
		case afterwards := <-calls:
			if !afterwards {
				t.Fatal("set up before the CRD was there")
			}
		case <-patience.Over():
			t.Fatal("not set up")
		}
	})
	t.Run("WithoutTheRightToWatchCRDsSetupIsAtOnce", func(t *testing.T) {
		calls := 0
		Gated(&runnables{}, controller.Options{Gate: openGate{}}, func() error { calls++; return nil }, kind)
		if calls != 1 {
			t.Fatalf("%d calls, want 1", calls)
		}
	})
	// A busy API server serves a kind only some time after it has established its CRD.
	t.Run("SetupWaitsUntilTheKindIsServed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, calls := &runnables{lag: 7}, 0
			Gated(m, controller.Options{Gate: openGate{}}, func() error { calls++; return nil }, kind)
			if calls != 1 || m.asked != 8 || len(m.added) > 0 {
				t.Fatalf("%d calls after %d requests, %d runnables", calls, m.asked, len(m.added))
			}
		})
	})
	t.Run("AKindThatIsNeverServedEndsTheManager", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := &runnables{lag: math.MaxInt}
			Gated(m, controller.Options{Gate: openGate{}}, func() error { t.Error("set up"); return nil }, kind)
			if len(m.added) != 1 || !meta.IsNoMatchError(errors.Unwrap(m.added[0].Start(context.Background()))) {
				t.Fatalf("%d runnables", len(m.added))
			}
		})
	})
	t.Run("AnErrorEndsTheManager", func(t *testing.T) {
		m := &runnables{}
		Gated(m, controller.Options{Gate: openGate{}}, func() error { return broken }, kind)
		if len(m.added) != 1 {
			t.Fatalf("%d runnables, want 1", len(m.added))
		}
		if err := m.added[0].Start(context.Background()); !errors.Is(err, broken) {
			t.Fatalf("the runnable ends with %v, want %v", err, broken)
		}
	})
}

func TestCRDsAreCachedWithoutTheirSchemas(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "g", Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Schema: &apiextensionsv1.CustomResourceValidation{}}},
	}}
	for o, options := range cacheOptions(time.Hour, undecoded.NewTracker()).ByObject {
		if _, ok := o.(*apiextensionsv1.CustomResourceDefinition); !ok {
			continue
		}
		cached, err := options.Transform(crd.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		crd.Spec.Versions[0].Schema = nil
		if diff := cmp.Diff(crd, cached); diff != "" {
			t.Errorf("cached (-want +got):\n%s", diff)
		}
		return
	}
	t.Error("the cache has no options for CRDs")
}
