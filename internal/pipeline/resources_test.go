package pipeline

import (
	"context"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func configMap(namespace, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}}
}

func TestClusterResourcesFetchesWhatASelectorMatches(t *testing.T) {
	reader := fake.NewClientBuilder().WithObjects(
		configMap("b", "two", map[string]string{"app": "x"}), configMap("b", "one", map[string]string{"app": "x"}),
		configMap("a", "three", map[string]string{"app": "x"}), configMap("a", "other", nil),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"app": "x"}}},
	).Build()
	labels := func(l map[string]string) *fnv1.ResourceSelector_MatchLabels {
		return &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: l}}
	}
	cases := map[string]struct {
		selector *fnv1.ResourceSelector
		want     []string
		none     bool
	}{
		"ANamespacedOneByName":        {selector: &fnv1.ResourceSelector{Kind: "ConfigMap", Namespace: ptr.To("a"), Match: &fnv1.ResourceSelector_MatchName{MatchName: "three"}}, want: []string{"a/three"}},
		"AClusterScopedOneByName":     {selector: &fnv1.ResourceSelector{Kind: "Node", Match: &fnv1.ResourceSelector_MatchName{MatchName: "n"}}, want: []string{"/n"}},
		"NoneIfTheNameDoesNotExist":   {selector: &fnv1.ResourceSelector{Kind: "ConfigMap", Namespace: ptr.To("a"), Match: &fnv1.ResourceSelector_MatchName{MatchName: "two"}}, none: true},
		"ByLabelsInANamespace":        {selector: &fnv1.ResourceSelector{Kind: "ConfigMap", Namespace: ptr.To("b"), Match: labels(map[string]string{"app": "x"})}, want: []string{"b/one", "b/two"}},
		"ByLabelsInAllNamespaces":     {selector: &fnv1.ResourceSelector{Kind: "ConfigMap", Match: labels(map[string]string{"app": "x"})}, want: []string{"a/three", "b/one", "b/two"}},
		"ByLabelsThatNoneHas":         {selector: &fnv1.ResourceSelector{Kind: "ConfigMap", Match: labels(map[string]string{"app": "y"})}},
		"ClusterScopedOnesByLabels":   {selector: &fnv1.ResourceSelector{Kind: "Node", Match: labels(map[string]string{"app": "x"})}, want: []string{"/n"}},
		"AllOfItsKindByEmptyLabels":   {selector: &fnv1.ResourceSelector{Kind: "ConfigMap", Namespace: ptr.To("a"), Match: labels(nil)}, want: []string{"a/other", "a/three"}},
		"AllOfItsKindWithoutAnyMatch": {selector: &fnv1.ResourceSelector{Kind: "ConfigMap"}, want: []string{"a/other", "a/three", "b/one", "b/two"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.selector.ApiVersion = "v1"
			got, err := NewClusterResources(reader).Fetch(t.Context(), tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			if (got == nil) != tc.none {
				t.Errorf("Fetch: got %v", got)
			}
			var names []string
			for _, item := range got.GetItems() {
				o := item.GetResource().AsMap()
				if o["kind"] != tc.selector.GetKind() {
					t.Errorf("kind: got %v", o["kind"])
				}
				m := o["metadata"].(map[string]any)
				namespace, _ := m["namespace"].(string)
				names = append(names, namespace+"/"+m["name"].(string))
			}
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Errorf("Fetch: -want, +got:\n%s", diff)
			}
		})
	}
}

// failing is a reader whose reads all end with an error.
type failing struct {
	err error
	// hangs until the context is done, as a cache does that is not allowed to list.
	hangs bool
}

func (f failing) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return f.end(ctx)
}

func (f failing) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	return f.end(ctx)
}

func (f failing) end(ctx context.Context) error {
	if f.hangs {
		<-ctx.Done()
		return apierrors.NewTimeoutError("failed waiting for Informer to sync", 0)
	}
	return f.err
}

func TestClusterResourcesExplainsByTheKindWhatItCannotRead(t *testing.T) {
	gk := schema.GroupKind{Group: "example.org", Kind: "Card"}
	cases := map[string]struct {
		reader failing
		want   string
	}{
		"AKindThatIsMissing": {
			reader: failing{err: &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: []string{"v1"}}},
			want:   `the API server has no kind "Card" of apiVersion "example.org/v1": `,
		},
		"AKindThatMayNotBeRead": {
			reader: failing{err: apierrors.NewForbidden(schema.GroupResource{Group: "example.org", Resource: "cards"}, "", nil)},
			want:   `provider-drover has no right to get, list and watch kind "Card" of apiVersion "example.org/v1": `,
		},
		"AKindWhoseCacheNeverFills": {
			reader: failing{hangs: true},
			want:   `cannot read kind "Card" of apiVersion "example.org/v1" in time (has provider-drover the right to get, list and watch it?): `,
		},
		"AnythingElse": {
			reader: failing{err: apierrors.NewInternalError(context.Canceled)},
			want:   `cannot read kind "Card" of apiVersion "example.org/v1": `,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := NewClusterResources(tc.reader)
			r.timeout = 10 * time.Millisecond
			for _, s := range []*fnv1.ResourceSelector{
				{ApiVersion: "example.org/v1", Kind: "Card", Match: &fnv1.ResourceSelector_MatchName{MatchName: "c"}},
				{ApiVersion: "example.org/v1", Kind: "Card"},
			} {
				_, err := r.Fetch(t.Context(), s)
				if !strings.HasPrefix(text(err), tc.want) {
					t.Errorf("error: want %q, got %q", tc.want, text(err))
				}
			}
		})
	}
}
