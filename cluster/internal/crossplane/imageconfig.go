package crossplane

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"

	"github.com/drover-dev/drover/cluster/internal/apply"
	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

// RewriteImages makes Crossplane pull Drover's packages, and their dependencies, from the registry
// at address under the names that they are released with.
func (x Installation) RewriteImages(ctx context.Context, address string) error {
	return apply.Object(ctx, x.Client, &v1beta1.ImageConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "drover-local-registry"},
		Spec: v1beta1.ImageConfigSpec{
			MatchImages:  []v1beta1.ImageMatch{{Type: v1beta1.Prefix, Prefix: xpkg.DefaultRegistry + "/"}},
			RewriteImage: &v1beta1.ImageRewrite{Prefix: address + "/" + xpkg.Organization + "/"},
		},
	})
}
