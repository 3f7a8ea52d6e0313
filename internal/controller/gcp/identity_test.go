package gcp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/drover-dev/drover/apis/gcp/v1alpha1"
	"github.com/drover-dev/drover/internal/native/nativetest"
	fakegcp "github.com/drover-dev/drover/test/fakes/gcp"
)

// TestAVMIsCreatedWithoutAKey uses the token of another identity provider, as that of a Kubernetes service account, which
// a file in the pod names by workload identity federation.
func TestAVMIsCreatedWithoutAKey(t *testing.T) {
	for name, tc := range map[string]struct {
		token string
		want  string // part of the error; empty for none
	}{
		"WithATokenThatGoogleTrusts":  {"token-of-the-pod", ""},
		"WithATokenThatGoogleRefuses": {"token-of-another-pod", "PermissionDenied: "},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, fakegcp.Options{})
			l.Federate("token-of-the-pod", fakegcp.Account)
			usePodIdentity(t, tc.token)
			c := cloudOf(l)
			c.Config.(*v1alpha1.ClusterProviderConfig).Spec.Credentials = v1alpha1.Credentials{Source: v1alpha1.CredentialsInjectedIdentity}
			c.Secrets = func() []string { return []string{tc.token} }
			nativetest.Until(t, c, newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
				if tc.want != "" {
					return strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, tc.want)
				}
				return vm.Status.AtProvider.ProviderID != ""
			}, nil)
			if calls, _ := l.Calls(); calls["POST /token"] > 0 || calls["POST /v1/token"] == 0 {
				t.Errorf("calls %v, want no token for a key", calls)
			}
		})
	}
}

// usePodIdentity lets the environment name a configuration of workload identity federation.
func usePodIdentity(t *testing.T, token string) {
	t.Helper()
	dir := t.TempDir()
	b, err := json.Marshal(map[string]any{
		"type": "external_account", "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/clusters/providers/management",
		"subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "token_url": endpoint + "/v1/token",
		"credential_source": map[string]string{"file": filepath.Join(dir, "token")},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "credentials.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(dir, "credentials.json"))
}
