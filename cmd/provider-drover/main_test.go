package main

import (
	"bytes"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/operator"
	"github.com/drover-dev/drover/internal/target"
)

// shippedRuntime returns the Deployment in the DeploymentRuntimeConfig of runtime.yaml.
func shippedRuntime(t *testing.T) appsv1.DeploymentSpec {
	t.Helper()
	b, err := os.ReadFile("../../package/provider-drover/runtime.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := struct {
		Spec struct {
			DeploymentTemplate struct {
				Spec appsv1.DeploymentSpec `json:"spec"`
			} `json:"deploymentTemplate"`
		} `json:"spec"`
	}{}
	if err := yaml.Unmarshal(bytes.Split(b, []byte("\n---\n"))[0], &config); err != nil {
		t.Fatal(err)
	}
	return config.Spec.DeploymentTemplate.Spec
}

func TestTheShippedArgumentsAreUnderstood(t *testing.T) {
	containers := shippedRuntime(t).Template.Spec.Containers
	if len(containers) != 1 || containers[0].Name != "package-runtime" {
		t.Fatalf("containers %+v, want package-runtime alone: Crossplane takes others for sidecars", containers)
	}
	f := &flags{}
	got, err := operator.Parse(newOperator(f), append(slices.Clone(containers[0].Args), "--injected-identity-for=a,b"))
	if err != nil {
		t.Fatal(err)
	}
	if networks, err := f.networks(""); err != nil || len(networks.Denied) == 0 {
		t.Errorf("networks %v, %v: the Services of the control cluster must be denied", networks, err)
	}
	if !got.LeaderElection {
		t.Error("two instances overlap while the Deployment is rolled out")
	}
	if got.Concurrency != 20 || !slices.Equal(f.InjectedIdentityFor, []string{"a", "b"}) {
		t.Errorf("flags %+v, %+v", got, f)
	}
}

func TestTheShippedRuntimeCanWriteToTmpOnly(t *testing.T) {
	pod := shippedRuntime(t).Template.Spec
	c := pod.Containers[0]
	if s := c.SecurityContext; s == nil || !ptr.Deref(s.ReadOnlyRootFilesystem, false) {
		t.Errorf("security context %+v: the root must be read-only", s)
	}
	if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].MountPath != "/tmp" || c.VolumeMounts[0].ReadOnly {
		t.Fatalf("volumes are mounted at %+v, want /tmp alone", c.VolumeMounts)
	}
	if v := pod.Volumes; len(v) != 1 || v[0].Name != c.VolumeMounts[0].Name || v[0].EmptyDir == nil || v[0].EmptyDir.SizeLimit.IsZero() {
		t.Errorf("volumes %+v, want an emptyDir with a limit", v)
	}
}

func TestTheControlClusterIsDeniedToProviderConfigs(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	got, err := (&flags{AllowTargetNetworks: []string{"127.0.0.0/8"}, DenyTargetNetworks: []string{"10.0.0.0/16"}}).networks("https://192.0.2.7:6443")
	if err != nil {
		t.Fatal(err)
	}
	want := target.Networks{
		Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Denied:  []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("10.96.0.1/32"), netip.MustParsePrefix("192.0.2.7/32")},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("networks %+v, want %+v", got, want)
	}
	for name, f := range map[string]flags{
		"--allow-target-networks": {AllowTargetNetworks: []string{"all"}},
		"--deny-target-networks":  {DenyTargetNetworks: []string{"10.0.0.0/40"}},
	} {
		if _, err := f.networks(""); err == nil || !strings.Contains(err.Error(), name+": invalid value") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheShippedRuntimeHasLimitsAndNoPrivileges(t *testing.T) {
	pod := shippedRuntime(t).Template.Spec
	c := pod.Containers[0]
	if p := pod.SecurityContext; p == nil || p.RunAsNonRoot == nil || !*p.RunAsNonRoot || p.SeccompProfile == nil || p.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("security context of the pod: %+v", pod.SecurityContext)
	}
	s := c.SecurityContext
	if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
		s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
		t.Errorf("security context of the container: %+v", s)
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
		t.Errorf("requests %v", c.Resources.Requests)
	}
	limit := c.Resources.Limits.Memory().Value()
	soft, ok := int64(0), false
	for _, e := range c.Env {
		if mib, is := strings.CutSuffix(e.Value, "MiB"); is && e.Name == "GOMEMLIMIT" {
			n, err := strconv.ParseInt(mib, 10, 64)
			soft, ok = n<<20, err == nil
		}
	}
	if !ok || soft >= limit || soft < limit/2 {
		t.Errorf("GOMEMLIMIT %d, limit of memory %d: must be a little below it", soft, limit)
	}
}
