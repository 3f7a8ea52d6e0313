package render_test

import (
	"strings"
	"testing"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/render"
	"github.com/drover-dev/drover/internal/plan/offer"
)

func TestOffers(t *testing.T) {
	one := offer.Offer{
		Composition: "nodepools", Versions: []string{"v1.35.4", "v1.34.8"}, MaxSize: 10, NotAllowed: 1,
		ClusterRef: machinev1alpha1.ClusterReference{Kind: "ClusterProviderConfig", Name: "eu"},
		Classes: []offer.Class{
			{Name: "large", MaxSize: 3},
			{Name: "small", Size: "cx22\x1b[2J", MaxSize: 10, FailureDomains: []machinev1alpha1.FailureDomain{"a", "b"}},
		},
	}
	want := `
CLASS  SIZE     CAPACITY  MAX SIZE  FAILURE DOMAINS
large  -        -         3         the class decides
small  cx22[2J  -         10        a, b
Versions: v1.35.4, v1.34.8; the first one is the default
Largest pool: 10 Nodes
Cluster: ClusterProviderConfig eu
Further classes, which do not exist or do not allow this namespace: 1
`
	if got := render.Plain(0, now).Offers([]offer.Offer{one}); got != want[1:] {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
	if got := render.Plain(0, now).Offers([]offer.Offer{one, one}); strings.Count(got, "Composition nodepools") != 2 {
		t.Errorf("of two Compositions:\n%s", got)
	}
}
