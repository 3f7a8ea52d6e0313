package approver

import (
	"slices"
	"testing"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/target"
)

func TestAJoinTokenIsFoundByTheIDOfItsToken(t *testing.T) {
	for name, tc := range map[string]struct{ externalName, want string }{
		"ThatComesFromItsUID": {"", names.TokenID("uid-1")},
		"ThatAUserGave":       {"abcdef", "abcdef"},
	} {
		t.Run(name, func(t *testing.T) {
			jt := &v1alpha1.JoinToken{}
			jt.Namespace, jt.Name, jt.UID = "ns", "j", "uid-1"
			jt.SetProviderConfigReference(&xpv1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "c"})
			if tc.externalName != "" {
				xpmeta.SetExternalName(jt, tc.externalName)
			}
			if got, want := tokenOf(jt), []string{key(target.ClusterRef("c"), tc.want)}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
