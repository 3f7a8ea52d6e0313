package providerconfig

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-dev/drover/apis/alibaba/v1alpha1"
)

// A controller waits for the kinds of its configurations: for one that the provider does not have, it would wait for ever.
func TestAProviderHasTheKindsOfItsConfigurations(t *testing.T) {
	cluster, namespaced := v1alpha1.SchemeGroupVersion.WithKind("ClusterProviderConfig"), v1alpha1.SchemeGroupVersion.WithKind("ProviderConfig")
	for name, tc := range map[string]struct {
		configs Configs
		want    []schema.GroupVersionKind
	}{
		"ForAllNamespaces": {Configs{GroupVersion: v1alpha1.SchemeGroupVersion, Cluster: &v1alpha1.ClusterProviderConfig{}}, []schema.GroupVersionKind{cluster}},
		"AndForOne":        {Configs{GroupVersion: v1alpha1.SchemeGroupVersion, Cluster: &v1alpha1.ClusterProviderConfig{}, Namespaced: &v1alpha1.ProviderConfig{}}, []schema.GroupVersionKind{cluster, namespaced}},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.configs.Kinds()
			slices.SortFunc(got, func(a, b schema.GroupVersionKind) int { return len(b.Kind) - len(a.Kind) })
			if !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
