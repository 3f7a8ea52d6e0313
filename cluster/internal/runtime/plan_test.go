package runtime

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	"github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"

	"github.com/drover-dev/drover/cluster/internal/layout"
)

func revision(image string) *pkgv1.ProviderRevision {
	r := &pkgv1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{
		Name: "rev-1", UID: "uid", Labels: map[string]string{pkgv1.LabelParentPackage: "drover-provider-drover"},
	}}
	r.Spec.Package = image
	return r
}

func TestTheComponentIsNamedAfterTheRepository(t *testing.T) {
	id, err := identify(revision("xpkg.drover.dev/drover/provider-drover:v0.1.0"))
	if err != nil {
		t.Fatal(err)
	}
	want := identity{Component: "provider-drover", Package: "drover-provider-drover", Revision: "rev-1", UID: "uid"}
	if id != want {
		t.Errorf("got %+v, want %+v", id, want)
	}
	if _, err := identify(revision("not a reference")); err == nil || !strings.Contains(err.Error(), "spec.image") {
		t.Errorf("bad image: got %v", err)
	}
}

func TestCustomize(t *testing.T) {
	name := "fixed"
	id := identity{Revision: "rev-1"}
	config := &v1beta1.DeploymentRuntimeConfig{Spec: v1beta1.DeploymentRuntimeConfigSpec{
		ServiceAccountTemplate: &v1beta1.ServiceAccountTemplate{Metadata: &v1beta1.ObjectMeta{Name: &name}},
		DeploymentTemplate: &v1beta1.DeploymentTemplate{Spec: &appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{
				{Name: "sidecar", Args: []string{"--no"}},
				{Name: "package-runtime", Args: []string{"--poll=5s"}, Env: []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "F", ValueFrom: &corev1.EnvVarSource{}}}},
			},
		}}}},
	}}
	if got := customize(id, nil); got.ServiceAccount != "rev-1" {
		t.Errorf("no config: the ServiceAccount is %q, want the revision's name", got.ServiceAccount)
	}
	got := customize(id, config)
	if got.ServiceAccount != "fixed" || !slices.Equal(got.Args, []string{"--poll=5s"}) || !slices.Equal(got.Env, []string{"A=b"}) {
		t.Errorf("got %+v", got)
	}
}

func TestEnvironment(t *testing.T) {
	dir := layout.Dir("/d")
	p := ports{GRPC: 1, Metrics: 2, Health: 3}
	for _, tc := range []struct {
		name string
		id   identity
		has  []string
		not  string
	}{
		{"OfAFunction", identity{Component: "f", Package: "p", Function: true},
			[]string{"ADDRESS=127.0.0.1:1", "METRICS_ADDRESS=127.0.0.1:2", "FUNCTION_NAME=p", "TLS_SERVER_CERTS_DIR=/d/packages/f/tls/server"}, "PROVIDER_NAME"},
		{"OfAProvider", identity{Component: "f", Package: "p"},
			[]string{"METRICS_BIND_ADDRESS=127.0.0.1:2", "HEALTH_PROBE_BIND_ADDRESS=127.0.0.1:3", "PROVIDER_NAME=p", "LEADER_ELECTION=false", "KUBECONFIG=/d/packages/f/kubeconfig", "POD_NAMESPACE=crossplane-system"}, "ADDRESS="},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env := environment(tc.id, customization{Env: []string{"X=y"}}, p, dir)
			for _, want := range append(tc.has, "X=y") {
				if !slices.Contains(env, want) {
					t.Errorf("%s is missing in %v", want, env)
				}
			}
			for _, v := range env {
				if strings.HasPrefix(v, tc.not) {
					t.Errorf("%s is not for it", v)
				}
			}
		})
	}
}
